# SPDX-License-Identifier: BSD-2-Clause
"""kubernetes.py ETC OUT: reads etc/kubernetes and etc/helm.

Fails where a name leads nowhere, where the chart is something else than the
manifest, and where a pod asks for a right.  Writes what the server gets into
the directory OUT.  Templates are rendered here, since Debian has no Helm: they
use no more of its language than this.
"""
import glob
import os
import re
import sys

import yaml

etc, out = sys.argv[1:]
faults = []


def check(what, holds):
    if not holds:
        faults.append(what)


def read(text):
    return [doc for doc in yaml.safe_load_all(text) if doc]


def load(name):
    with open(os.path.join(etc, name), encoding="utf-8") as f:
        return f.read()


def render(text, scope):
    """{{ .A.b }}, {{ .A.b | indent N }}, {{ toYaml .A.b | indent N }}"""
    def value(match):
        to_yaml, path, indent = match.groups()
        v = scope
        for key in path.strip(".").split("."):
            v = v[key]
        v = yaml.safe_dump(v).rstrip("\n") if to_yaml else v
        v = "" if v is None else str(v)
        return re.sub("^", " " * int(indent or 0), v, flags=re.M)

    text = re.sub(r"\{\{ (toYaml )?((?:\.\w+)+)(?: \| indent (\d+))? \}\}",
                  value, text)
    check(f"a template has an action that is not known: {text}",
          "{{" not in text)
    return text


def by_kind(docs):
    return {(d["kind"], d["metadata"]["name"]): d for d in docs}


def chart(release):
    scope = {"Values": yaml.safe_load(load("helm/gannet/values.yaml")),
             "Release": {"Name": release, "Namespace": "default"}}
    docs = []
    for name in sorted(glob.glob(f"{etc}/helm/gannet/templates/*.yaml")):
        docs += read(render(load(os.path.relpath(name, etc)), scope))
    return docs


def check_kept(objects):
    """Takes the annotation that only Helm reads out of the volumes."""
    for (kind, name), o in objects.items():
        if kind == "PersistentVolumeClaim":
            check(f"helm uninstall keeps {name}",
                  o["metadata"].pop("annotations", None) ==
                  {"helm.sh/resource-policy": "keep"})


def check_pod(objects, deployment):
    template = deployment["spec"]["template"]
    pod = template["spec"]
    container, = pod["containers"]
    labels = template["metadata"]["labels"]
    check("the deployment selects its pods",
          deployment["spec"]["selector"]["matchLabels"].items()
          <= labels.items())
    service = next(o for k, o in objects.items() if k[0] == "Service")
    check("the service selects the pods",
          service["spec"]["selector"].items() <= labels.items())
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    check("the service leads to a port of the pod",
          all(p["targetPort"] in ports for p in service["spec"]["ports"]))
    for probe, path in (("startupProbe", "/healthz"),
                        ("livenessProbe", "/healthz"),
                        ("readinessProbe", "/readyz")):
        get = container[probe]["httpGet"]
        check(f"{probe} asks for {path}", get["path"] == path)
        check(f"{probe} has a port", get["port"] in ports)
    volumes = {}
    for v in pod["volumes"]:
        volumes[v["name"]] = v
        if "configMap" in v:
            check("the ConfigMap is there",
                  ("ConfigMap", v["configMap"]["name"]) in objects)
        if "persistentVolumeClaim" in v:
            claim = v["persistentVolumeClaim"]["claimName"]
            check("the claim is there",
                  ("PersistentVolumeClaim", claim) in objects)
    check("each volume is mounted, and no other",
          {m["name"] for m in container["volumeMounts"]} == set(volumes))
    check_rights(pod, container)
    return container, ports


def check_rights(pod, container):
    mine = container["securityContext"]
    check("no capabilities", mine["capabilities"] == {"drop": ["ALL"]})
    check("no more rights than at the start",
          mine["allowPrivilegeEscalation"] is False)
    check("a root that can't be written", mine["readOnlyRootFilesystem"])
    check("no root", pod["securityContext"]["runAsNonRoot"] is True and
          pod["securityContext"]["runAsUser"] > 0)
    check("nothing of the host", not {"hostNetwork", "hostPID", "hostIPC"}
          & set(pod) and not any("hostPath" in v for v in pod["volumes"]))
    check("a system call filter", pod["securityContext"]["seccompProfile"]
          == {"type": "RuntimeDefault"})


def check_class(objects, ports, exports):
    service = next(o for k, o in objects.items() if k[0] == "Service")
    cls = next(o for k, o in objects.items() if k[0] == "StorageClass")
    host = cls["parameters"]["server"].split(".")
    check("the class names the service",
          host[0] == service["metadata"]["name"])
    check("the class names the export",
          exports.split()[0] == cls["parameters"]["share"])
    options = dict((o.split("=") + [""])[:2] for o in cls["mountOptions"])
    port = str(service["spec"]["ports"][0]["port"])
    check("the options are those of NFSv3 without rpcbind",
          options == {"nfsvers": "3", "proto": "tcp", "port": port,
                      "mountproto": "tcp", "mountport": port, "nolock": "",
                      "hard": ""})
    check("the pod has the default port", ports["nfs"] == 2049)


def main():
    plain = read(load("kubernetes/gannet.yaml")) + \
        read(load("kubernetes/storageclass.yaml"))
    objects = by_kind(plain)
    check("each object has its own name", len(objects) == len(plain))
    same, other = by_kind(chart("gannet")), by_kind(chart("other"))
    check_kept(same)
    check("the chart is the manifest", same == objects)
    check("two releases share no name", not set(other) & set(objects))
    for some in (objects, other):
        deployment = next(o for k, o in some.items() if k[0] == "Deployment")
        container, ports = check_pod(some, deployment)
        config = next(o for k, o in some.items() if k[0] == "ConfigMap")["data"]
        check_class(some, ports, config["exports"])
    check("two releases select different pods",
          other["Service", "other"]["spec"]["selector"] !=
          objects["Service", "gannet"]["spec"]["selector"])
    check("probes have a port of the server",
          f"listen = 0.0.0.0:{ports['metrics']}" in
          config["gannet.conf"].splitlines())
    config["arguments"] = "\n".join(container["args"]) + "\n"
    for name, text in config.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(text)
    for fault in faults:
        print(f"does not hold: {fault}")
    return bool(faults)


sys.exit(main())
