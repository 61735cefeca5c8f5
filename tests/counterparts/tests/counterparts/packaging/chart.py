"""Lints a chart, renders it with the values on the standard input, and checks each manifest against the schemas of
Kubernetes. Prints the manifests as JSON. Called with the chart and a version of Kubernetes."""

import json
import sys

import helm_python
import kubernetes_validate
import yaml

# Severities of Helm's linter.
WARNING = 2


def main(chart, version):
    values = json.load(sys.stdin)
    linted = helm_python.lint(chart, values, strict=True)
    wrong = [m["error"] for m in linted["messages"] if m["severity"] >= WARNING] + linted["errors"]
    if wrong:
        return "lint: " + "; ".join(map(str, wrong))
    with helm_python.Chart.load(chart) as loaded:
        loaded.validate_schema(values)
        files = loaded.render(values, name="demo", namespace="prod")
    manifests = []
    for name, text in sorted(files.items()):
        if name.endswith(".txt"):
            manifests.append({"kind": "Notes", "text": text})
            continue
        for manifest in yaml.safe_load_all(text):
            if manifest is None:
                continue
            # Kubernetes itself does not know this one.
            if manifest["kind"] != "ServiceMonitor":
                kubernetes_validate.validate(manifest, version, strict=True)
            manifests.append(manifest)
    json.dump(manifests, sys.stdout)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Exception as error:  # One sentence, instead of a trace.
        sys.exit(f"{type(error).__name__}: {error}")
