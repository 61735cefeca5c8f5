{{- define "sluicegate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluicegate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "sluicegate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluicegate.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluicegate.selector" -}}
app.kubernetes.io/name: {{ include "sluicegate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluicegate.labels" -}}
{{ include "sluicegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sluicegate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sluicegate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sluicegate.hasRedis" -}}
{{- if or .Values.redis.url .Values.redis.secret.name -}}yes{{- end -}}
{{- end -}}

{{- define "sluicegate.hasMasters" -}}
{{- if or .Values.masters.url .Values.masters.secret.name -}}yes{{- end -}}
{{- end -}}

{{- define "sluicegate.hasSeveral" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}yes{{- end -}}
{{- end -}}

{{/* What cannot be meant. */}}
{{- define "sluicegate.check" -}}
{{- if not (or .Values.rules .Values.envoy .Values.capacity) -}}
{{- fail "rules, envoy and capacity are all empty: the server needs policies" -}}
{{- end -}}
{{- if and .Values.capacity (include "sluicegate.hasSeveral" .) (not (include "sluicegate.hasMasters" .)) -}}
{{- fail "several replicas would each lease the whole capacity: set masters.url or masters.secret, or replicas: 1 and autoscaling.enabled: false" -}}
{{- end -}}
{{- if and (include "sluicegate.hasMasters" .) (not .Values.capacity) -}}
{{- fail "masters elects who divides the capacity, and capacity is empty" -}}
{{- end -}}
{{- if and .Values.masters.url .Values.masters.secret.name -}}
{{- fail "masters.url and masters.secret.name are both set: one of them has the address" -}}
{{- end -}}
{{- if and (include "sluicegate.hasMasters" .) .Values.tls.secret (not .Values.masters.tlsName) -}}
{{- fail "masters with tls.secret needs masters.tlsName, a name in the certificate: pods call each other by their addresses, which it lacks" -}}
{{- end -}}
{{- if and .Values.masters.tlsName (not (and (include "sluicegate.hasMasters" .) .Values.tls.secret)) -}}
{{- fail "masters.tlsName is a name in the certificate of replicas that elect one of them: set tls.secret and masters.url or masters.secret" -}}
{{- end -}}
{{- if and .Values.masters.authorities (not (include "sluicegate.hasMasters" .)) -}}
{{- fail "masters.authorities needs masters.url or masters.secret" -}}
{{- end -}}
{{- if and .Values.state.enabled (include "sluicegate.hasRedis" .) -}}
{{- fail "state.enabled keeps what is counted in memory, and with redis nothing is: set one of them" -}}
{{- end -}}
{{- if and .Values.state.enabled (include "sluicegate.hasSeveral" .) -}}
{{- fail "state.enabled is for one replica: set replicas: 1 and autoscaling.enabled: false, or count in redis" -}}
{{- end -}}
{{- if and .Values.redis.lease (not (include "sluicegate.hasRedis" .)) -}}
{{- fail "redis.lease needs redis.url or redis.secret" -}}
{{- end -}}
{{- if and .Values.redis.url .Values.redis.secret.name -}}
{{- fail "redis.url and redis.secret.name are both set: one of them has the address" -}}
{{- end -}}
{{- if and (or .Values.rules .Values.envoy) (include "sluicegate.hasSeveral" .) (not (include "sluicegate.hasRedis" .)) (not .Values.countAlone) -}}
{{- fail "several replicas without redis each admit every limit: set redis.url or redis.secret, or countAlone: true" -}}
{{- end -}}
{{- if and .Values.metrics.enabled (not .Values.metrics.tokenSecret.name) -}}
{{- fail "metrics.enabled needs metrics.tokenSecret.name: the admin port is not open to others without a token" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled" -}}
{{- end -}}
{{- if and .Values.tls.clients (not .Values.tls.secret) -}}
{{- fail "tls.clients needs tls.secret" -}}
{{- end -}}
{{- end -}}
