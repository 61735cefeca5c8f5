//! The Helm chart, rendered by Helm's own engine.

use serde_json::{Value, json};

use crate::packaging::program::{assert_serves, python, words};

const CHART: &str = "packaging/helm/sluicegate";

/// The oldest version of Kubernetes that the chart names, and the newest whose schemas are here.
const VERSIONS: [&str; 2] = ["1.25", "1.37"];

fn render(values: &Value) -> Result<Vec<Value>, String> {
    let rendered = python("chart.py", &[CHART, VERSIONS[1]], &values.to_string())?;
    Ok(rendered.as_array().expect("manifests").clone())
}

fn rendered(values: &Value) -> Vec<Value> {
    render(values).unwrap_or_else(|error| panic!("{values}: {error}"))
}

fn of_kind<'a>(manifests: &'a [Value], kind: &str) -> Option<&'a Value> {
    manifests.iter().find(|manifest| manifest["kind"] == kind)
}

/// The pod of the deployment.
fn pod(manifests: &[Value]) -> &Value {
    &of_kind(manifests, "Deployment").expect("a deployment")["spec"]["template"]["spec"]
}

const CAPACITY: &str = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\n";

fn everything() -> Value {
    json!({
        "image": { "pullSecrets": [{ "name": "registry" }] },
        "envoy": { "edge.yaml": "domain: edge\ndescriptors: []\n" },
        "redis": { "secret": { "name": "redis" }, "lease": 50 },
        "connections": 500,
        "idleTimeout": 90,
        "shadow": true,
        "extraArgs": ["--no-overrides"],
        "tls": { "secret": "certificate", "clients": "authorities" },
        "service": { "headless": true, "annotations": { "a": "b" } },
        "metrics": {
            "enabled": true,
            "tokenSecret": { "name": "token" },
            "serviceMonitor": { "enabled": true, "labels": { "release": "prometheus" } },
        },
        "autoscaling": { "enabled": true },
        "networkPolicy": {
            "enabled": true,
            "from": [{ "podSelector": { "matchLabels": { "app": "envoy" } } }],
            "prometheus": [{ "namespaceSelector": { "matchLabels": { "a": "monitoring" } } }],
        },
        "serviceAccount": { "annotations": { "a": "b" } },
        "podAnnotations": { "a": "b" },
        "podLabels": { "a": "b" },
        "priorityClassName": "high",
        "nodeSelector": { "a": "b" },
        "tolerations": [{ "key": "a", "operator": "Exists" }],
        "affinity": { "nodeAffinity": {} },
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": { "a": "b" } },
        }],
    })
}

fn with_state() -> Value {
    json!({ "state": { "enabled": true, "size": "2Gi", "storageClass": "fast" } })
}

#[test]
fn helm_renders_manifests_that_fit_the_schemas_of_kubernetes() {
    for version in VERSIONS {
        for values in [json!({}), everything(), json!({ "capacity": CAPACITY }), with_state()] {
            let read = python("chart.py", &[CHART, version], &values.to_string());
            read.unwrap_or_else(|error| panic!("Kubernetes {version}, {values}: {error}"));
        }
    }
    let manifests = rendered(&everything());
    for kind in [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ] {
        assert!(of_kind(&manifests, kind).is_some(), "no {kind}");
    }
    let plain = rendered(&json!({}));
    for kind in [
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "ServiceMonitor",
    ] {
        assert!(of_kind(&plain, kind).is_none(), "{kind}");
    }
}

#[test]
fn the_pod_has_no_rights_that_it_does_not_need() {
    for values in [json!({}), everything()] {
        let manifests = rendered(&values);
        let pod = pod(&manifests);
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let container = &pod["containers"][0];
        let rights = &container["securityContext"];
        assert_eq!(rights["readOnlyRootFilesystem"], true);
        assert_eq!(rights["allowPrivilegeEscalation"], false);
        assert_eq!(rights["capabilities"]["drop"], json!(["ALL"]));
        assert!(container["resources"]["limits"]["memory"].is_string());
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        assert!(mounts.iter().all(|mount| mount["readOnly"] == true), "{mounts:?}");
    }
}

#[test]
fn an_image_can_be_named_by_its_digest() {
    let image = |values: &Value| pod(&rendered(values))["containers"][0]["image"].clone();
    let digest = format!("sha256:{}", "0a".repeat(32));
    let values = json!({ "image": { "repository": "r/s", "tag": "1", "digest": digest } });
    assert_eq!(image(&values), format!("r/s@{digest}"));
    assert_eq!(image(&json!({ "image": { "repository": "r/s", "tag": "1" } })), "r/s:1");
    assert!(render(&json!({ "image": { "digest": "latest" } })).is_err());
}

#[test]
fn arguments_are_texts_whatever_they_hold() {
    let values = json!({ "proxies": ["10.0.0.0/8", "::1"], "logLevel": "info, a: b #c", "extraArgs": ["yes"] });
    let manifests = rendered(&values);
    let arguments = words(&pod(&manifests)["containers"][0]["args"]);
    for word in ["--proxies=10.0.0.0/8,::1", "--log-level=info, a: b #c", "yes"] {
        assert!(arguments.contains(&word.to_owned()), "{arguments:?}");
    }
}

#[test]
fn several_replicas_are_spread_and_one_is_not() {
    let spread = |values: &Value| pod(&rendered(values))["topologySpreadConstraints"].clone();
    assert!(spread(&json!({})).is_null());
    let several = spread(&json!({ "replicas": 3, "countAlone": true }));
    let keys = several.as_array().expect("a list").iter().map(|one| one["topologyKey"].clone());
    let keys: Vec<_> = keys.collect();
    assert_eq!(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let labels = &several[0]["labelSelector"]["matchLabels"];
    assert_eq!(labels["app.kubernetes.io/name"], "sluicegate");
    assert_eq!(spread(&everything())[0]["topologyKey"], "zone");
}

#[test]
fn kubernetes_waits_longer_than_a_drain() {
    let manifests = rendered(&json!({ "drain": { "delay": 7, "limit": 60 } }));
    let pod = pod(&manifests);
    assert_eq!(pod["terminationGracePeriodSeconds"], 72);
    let arguments = words(&pod["containers"][0]["args"]);
    for argument in ["--drain-delay=7", "--drain=60"] {
        assert!(arguments.contains(&argument.to_owned()), "{arguments:?}");
    }
}

#[test]
fn probes_ask_in_a_way_that_the_ports_answer() {
    let probe = |values: &Value| pod(&rendered(values))["containers"][0]["readinessProbe"].clone();
    assert_eq!(probe(&json!({}))["httpGet"]["scheme"], "HTTP");
    assert_eq!(probe(&json!({ "tls": { "secret": "a" } }))["httpGet"]["scheme"], "HTTPS");
    // The kubelet has no certificate.
    let exec = &probe(&json!({ "tls": { "secret": "a", "clients": "b" } }))["exec"]["command"];
    assert_eq!(words(exec), ["/usr/bin/sluicegate", "health"]);
}

#[test]
fn secrets_are_not_in_the_arguments() {
    let manifests = rendered(&everything());
    let container = &pod(&manifests)["containers"][0];
    let names: Vec<_> = container["env"].as_array().expect("variables").iter().collect();
    for (name, secret) in [("SLUICEGATE_ADMIN_TOKEN", "token"), ("SLUICEGATE_REDIS", "redis")] {
        let variable = names.iter().find(|variable| variable["name"] == name).expect(name);
        assert_eq!(variable["valueFrom"]["secretKeyRef"]["name"], secret);
    }
}

#[test]
fn values_that_cannot_be_meant_are_errors_that_say_why() {
    for (values, said) in [
        (json!({ "replicas": 3 }), "several replicas without redis each admit every limit"),
        (json!({ "autoscaling": { "enabled": true } }), "several replicas without redis"),
        (json!({ "rules": "" }), "the server needs policies"),
        (
            json!({ "capacity": CAPACITY, "replicas": 2, "countAlone": true }),
            "several replicas would each lease the whole capacity",
        ),
        (json!({ "masters": { "url": "redis://r" } }), "and capacity is empty"),
        (json!({ "capacity": CAPACITY, "masters": { "url": "http://r" } }), "/masters/url"),
        (
            json!({ "capacity": CAPACITY, "masters": { "url": "redis://r", "secret": { "name": "s" } } }),
            "one of them has the address",
        ),
        (
            json!({ "capacity": CAPACITY, "masters": { "url": "redis://r" }, "tls": { "secret": "s" } }),
            "masters with tls.secret needs masters.tlsName",
        ),
        (
            json!({ "capacity": CAPACITY, "masters": { "url": "redis://r", "tlsName": "n" } }),
            "set tls.secret and masters.url",
        ),
        (json!({ "masters": { "authorities": "ca" } }), "masters.authorities needs masters.url"),
        (
            json!({ "state": { "enabled": true }, "redis": { "url": "redis://r" } }),
            "with redis nothing is",
        ),
        (
            json!({ "state": { "enabled": true }, "replicas": 2, "countAlone": true }),
            "state.enabled is for one replica",
        ),
        (json!({ "state": { "enabled": true, "size": "much" } }), "/state/size"),
        (json!({ "redis": { "lease": 50 } }), "redis.lease needs redis.url or redis.secret"),
        (json!({ "redis": { "url": "redis://r", "lease": 1 } }), "/redis/lease"),
        (json!({ "idleTimeout": 0 }), "/idleTimeout"),
        (json!({ "keys": 0 }), "/keys"),
        (json!({ "metrics": { "enabled": true } }), "metrics.tokenSecret.name"),
        (json!({ "metrics": { "serviceMonitor": { "enabled": true } } }), "needs metrics.enabled"),
        (json!({ "tls": { "clients": "b" } }), "tls.clients needs tls.secret"),
        (
            json!({ "redis": { "url": "redis://r:6379", "secret": { "name": "redis" } } }),
            "one of them has the address",
        ),
        (json!({ "replica": 2 }), "additional properties 'replica' not allowed"),
        (json!({ "fields": "ietf" }), "/fields"),
        (json!({ "redis": { "url": "http://r" } }), "/redis/url"),
        (json!({ "envoy": { "notes.txt": "" } }), "notes.txt"),
    ] {
        let error = render(&values).expect_err("an error");
        assert!(error.contains(said), "{values}: {error}");
    }
    assert!(render(&json!({ "replicas": 3, "countAlone": true })).is_ok());
}

#[test]
fn options_of_the_store_and_of_connections_are_arguments() {
    let arguments = |values: &Value| words(&pod(&rendered(values))["containers"][0]["args"]);
    let has = |values: &Value, word: &str| arguments(values).contains(&word.to_owned());
    for word in ["--redis-lease=50", "--connections=500", "--idle-timeout=90"] {
        assert!(has(&everything(), word), "{word}");
    }
    assert!(!arguments(&everything()).iter().any(|word| word.starts_with("--keys")));
    for word in ["--keys=131072", "--connections=10000", "--idle-timeout=75"] {
        assert!(has(&json!({}), word), "{word}");
    }
    // Helm reads large numbers as floating point.
    assert!(has(&json!({ "keys": 100_000_000 }), "--keys=100000000"));
}

#[test]
fn the_arguments_of_the_pod_and_its_policies_serve() {
    let mut values = everything();
    // Certificates would be made for nothing else here.
    values["tls"] = json!({});
    serve(&values);
}

#[test]
fn a_file_of_capacity_is_served_by_one_pod_at_a_time() {
    let values = json!({ "rules": "", "capacity": CAPACITY });
    let manifests = rendered(&values);
    let deployment = of_kind(&manifests, "Deployment").expect("a deployment");
    assert_eq!(deployment["spec"]["strategy"], json!({ "type": "Recreate" }));
    serve(&values);
}

#[test]
fn replicas_that_elect_a_master_share_a_file_of_capacity() {
    let values = json!({
        "rules": "",
        "capacity": CAPACITY,
        "replicas": 3,
        "masters": { "url": "redis://r:6379" },
        "networkPolicy": { "enabled": true, "from": [{ "podSelector": {} }] },
    });
    let manifests = rendered(&values);
    let deployment = of_kind(&manifests, "Deployment").expect("a deployment");
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert!(deployment["spec"]["strategy"]["rollingUpdate"].is_object());
    let variable = |manifests: &[Value], name: &str| {
        let variables = pod(manifests)["containers"][0]["env"].as_array().expect("variables");
        variables.iter().find(|variable| variable["name"] == name).expect(name).clone()
    };
    assert_eq!(variable(&manifests, "SLUICEGATE_MASTERS")["value"], "redis://r:6379");
    assert_eq!(variable(&manifests, "SLUICEGATE_ADVERTISE")["value"], "$(POD_IP):8081");
    let address = variable(&manifests, "POD_IP");
    assert_eq!(address["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
    let policy = of_kind(&manifests, "NetworkPolicy").expect("a policy");
    let own = &policy["spec"]["ingress"][1]["from"][0]["podSelector"]["matchLabels"];
    assert_eq!(own, &deployment["spec"]["selector"]["matchLabels"]);
    let values = json!({ "capacity": CAPACITY, "masters": { "secret": { "name": "store" } } });
    let secret = variable(&rendered(&values), "SLUICEGATE_MASTERS");
    assert_eq!(secret["valueFrom"]["secretKeyRef"], json!({ "name": "store", "key": "url" }));
}

#[test]
fn replicas_with_tls_call_each_other_by_a_name_in_their_certificate() {
    let mut values = json!({
        "rules": "",
        "capacity": CAPACITY,
        "replicas": 3,
        "masters": { "url": "etcds://etcd:2379", "authorities": "etcd-ca", "tlsName": "limits.example" },
        "tls": { "secret": "certificate" },
    });
    let manifests = rendered(&values);
    let arguments = words(&pod(&manifests)["containers"][0]["args"]);
    for word in [
        "--advertise-name=limits.example",
        "--masters-authorities=/etc/sluicegate/masters/ca.crt",
        "--tls-certificate=/etc/sluicegate/tls/tls.crt",
    ] {
        assert!(arguments.contains(&word.to_owned()), "{word}: {arguments:?}");
    }
    let volumes = pod(&manifests)["volumes"].as_array().expect("volumes");
    let volume = volumes.iter().find(|volume| volume["name"] == "masters").expect("a volume");
    assert_eq!(volume["secret"]["secretName"], "etcd-ca");
    // One replica alone needs neither.
    values["masters"] = json!({});
    values["replicas"] = json!(1);
    let arguments = words(&pod(&rendered(&values))["containers"][0]["args"]);
    assert!(!arguments.iter().any(|word| word.contains("name=") || word.contains("masters")));
}

#[test]
fn counts_are_kept_on_a_volume_that_one_pod_has_at_a_time() {
    let manifests = rendered(&with_state());
    let claim = of_kind(&manifests, "PersistentVolumeClaim").expect("a claim");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let deployment = of_kind(&manifests, "Deployment").expect("a deployment");
    assert_eq!(deployment["spec"]["strategy"], json!({ "type": "Recreate" }));
    let (volumes, container) = (&pod(&manifests)["volumes"], &pod(&manifests)["containers"][0]);
    let named = |list: &Value| {
        let mut list = list.as_array().expect("a list").iter();
        list.find(|one| one["name"] == "state").expect("the volume").clone()
    };
    assert_eq!(named(volumes)["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"]);
    let mount = named(&container["volumeMounts"]);
    assert_eq!(mount["mountPath"], "/var/lib/sluicegate");
    assert!(mount["readOnly"].is_null());
    let arguments = words(&container["args"]);
    assert!(arguments.contains(&"--state=/var/lib/sluicegate/counts".to_owned()), "{arguments:?}");
    // A claim that exists is used as it is.
    let manifests = rendered(&json!({ "state": { "enabled": true, "existingClaim": "mine" } }));
    assert!(of_kind(&manifests, "PersistentVolumeClaim").is_none());
    assert_eq!(named(&pod(&manifests)["volumes"])["persistentVolumeClaim"]["claimName"], "mine");
    serve(&with_state());
}

/// Starts a server as the pod of these values would.
fn serve(values: &Value) {
    let manifests = rendered(values);
    let directory = tempfile::tempdir().expect("a directory");
    let maps = manifests.iter().filter(|manifest| manifest["kind"] == "ConfigMap");
    let mounts =
        pod(&manifests)["containers"][0]["volumeMounts"].as_array().expect("mounts").clone();
    for map in maps {
        let volumes = pod(&manifests)["volumes"].as_array().expect("volumes").iter();
        let mut named =
            volumes.filter(|volume| volume["configMap"]["name"] == map["metadata"]["name"]);
        let volume = &named.next().expect("a volume")["name"];
        let mount = mounts.iter().find(|mount| mount["name"] == *volume).expect("a mount");
        let folder = mount["mountPath"].as_str().expect("a path").trim_start_matches('/');
        let folder = directory.path().join(folder);
        // As Kubernetes mounts it: links to a hidden folder, which it replaces.
        let hidden = folder.join("..2026_11_22");
        std::fs::create_dir_all(&hidden).expect("a folder");
        std::os::unix::fs::symlink("..2026_11_22", folder.join("..data")).expect("a link");
        for (name, text) in map["data"].as_object().expect("files") {
            std::fs::write(hidden.join(name), text.as_str().expect("text")).expect("a file");
            std::os::unix::fs::symlink(format!("..data/{name}"), folder.join(name))
                .expect("a link");
        }
    }
    let arguments = words(&pod(&manifests)["containers"][0]["args"]);
    let place = format!("={}/etc/", directory.path().display());
    let state = directory.path().join("var/lib/sluicegate");
    std::fs::create_dir_all(&state).expect("a folder");
    let local = |word: String| {
        word.replace("=/etc/", &place)
            .replace("=/var/lib/sluicegate", &format!("={}", state.display()))
    };
    // Nobody has to wait for a load balancer.
    let is_kept = |word: &String| !word.starts_with("--drain-delay");
    let mut arguments: Vec<_> = arguments.into_iter().filter(is_kept).map(local).collect();
    if arguments.iter().any(|word| word.starts_with("--redis-lease")) {
        // It is in a secret, and need not be there when the server starts.
        arguments.push("--redis=redis://127.0.0.1:1".to_owned());
    }
    assert_serves(&arguments);
}
