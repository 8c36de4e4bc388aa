"""Plays the rendered manifests of deploy/kubernetes with podman, on one network.

Podman knows pods, and neither StatefulSets, Jobs, Services, projected volumes nor network policies. So each workload
becomes one pod, with its specification unchanged except for these parts:

- Its name is that of the workload, which is also the name of its Service in DNS.
- Its volumes are folders of the host, with the files, the modes and the group that the kubelet would give them.
- It has no probes: podman would run `curl` in the image. The test makes their requests from outside, as the kubelet does.
- It lists no ports: podman would publish them all on the host.
"""

import base64
import os
import pathlib
import subprocess

import yaml

import docker

NETWORK = "heliograph-kubernetes"
PODMAN_DIFFERS = ["startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "ports"]


def rendered(folder: pathlib.Path) -> list[dict]:
    """The objects of a kustomization."""
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


class Cluster:
    """The workloads of some objects, and their volumes below `folder`."""

    def __init__(self, objects: list[dict], folder: pathlib.Path):
        self.folder = folder
        self.files = {
            (one["kind"], one["metadata"]["name"]): contents_of(one)
            for one in objects
            if one["kind"] in ("ConfigMap", "Secret")
        }
        self.workloads = {
            one["metadata"]["name"]: one for one in objects if one["kind"] in ("Deployment", "StatefulSet", "Job", "Pod")
        }
        self.services = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "Service"}

    def pod(self, name: str) -> dict:
        """The pod of a workload, for podman."""
        template = self.template(name)
        spec = {**template["spec"]}
        group = spec["securityContext"]["fsGroup"]
        volumes = {one["name"]: one for one in spec.pop("volumes", [])}
        for claim in self.workloads[name]["spec"].get("volumeClaimTemplates", []):
            volumes[claim["metadata"]["name"]] = {"emptyDir": {}}
        spec["volumes"] = []
        spec["containers"] = [dict(one) for one in spec["containers"]]
        for container in spec["containers"]:
            for key in PODMAN_DIFFERS:
                container.pop(key, None)
            container["image"] = image(container["image"])
            container["imagePullPolicy"] = "Never"
            container["volumeMounts"] = [
                self.mount(name, mount, volumes[mount["name"]], group, spec["volumes"])
                for mount in container.get("volumeMounts", [])
            ]
        labels = template["metadata"].get("labels", {})
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}

    def mount(self, pod: str, mount: dict, volume: dict, group: int, volumes: list[dict]) -> dict:
        """Writes the volume, appends it to `volumes`, and returns its mount."""
        folder = self.folder / pod / mount["name"]
        self.write(folder, volume, group)
        path = folder / mount["subPath"] if "subPath" in mount else folder
        # Two mounts of one volume, with and without `subPath`, are two of podman's.
        name = f"v{len(volumes)}"
        kind = "File" if path.is_file() else "Directory"
        volumes.append({"name": name, "hostPath": {"path": str(path), "type": kind}})
        return {"name": name, "mountPath": mount["mountPath"], "readOnly": mount.get("readOnly", False)}

    def write(self, folder: pathlib.Path, volume: dict, group: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, 0, group)
        folder.chmod(0o2775)
        for source, mode in sources_of(volume):
            for name, content in self.selected(source).items():
                file = folder / name
                file.write_bytes(content)
                os.chown(file, 0, group)
                file.chmod(mode)

    def selected(self, source: dict) -> dict[str, bytes]:
        """The files of a ConfigMap or a Secret; of the listed keys only, if there are `items`."""
        for kind, key in (("ConfigMap", "configMap"), ("Secret", "secret")):
            if key in source:
                found = source[key]
                name = found.get("name") or found["secretName"]
                if found.get("optional") and (kind, name) not in self.files:
                    return {}
                files = self.files[kind, name]
                return {one["path"]: files[one["key"]] for one in found["items"]} if "items" in found else files
        raise AssertionError(f"the test does not know the volume {sorted(source)}")

    def play(self, *names: str) -> None:
        """Starts the workloads at once, as Kubernetes does."""
        file = self.folder / "pods.yaml"
        file.write_text(yaml.safe_dump_all([self.pod(name) for name in names]))
        docker.podman("kube", "play", "--network", NETWORK, "--log-driver", "k8s-file", str(file))

    def container(self, name: str) -> dict:
        """The state of a workload's container, which has the workload's name."""
        return docker.inspect(f"{name}-{name}")

    def declared(self, name: str) -> dict:
        """The container in the manifest."""
        (container,) = self.template(name)["spec"]["containers"]
        return container

    def template(self, name: str) -> dict:
        workload = self.workloads[name]
        return workload if workload["kind"] == "Pod" else workload["spec"]["template"]

    def port(self, name: str, port: str | int) -> int:
        """The number of a port that the manifest names."""
        if isinstance(port, int):
            return port
        (number,) = (one["containerPort"] for one in self.declared(name)["ports"] if one.get("name") == port)
        return number

    def selected_by(self, service: str) -> list[str]:
        """The workloads that a Service selects."""
        wanted = self.services[service]["selector"].items()
        return [name for name in self.workloads if wanted <= self.template(name)["metadata"]["labels"].items()]

    def address(self, name: str) -> str:
        infra = docker.podman("pod", "inspect", "--format", "{{.InfraContainerID}}", name).strip()
        return docker.inspect(infra)["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]


def contents_of(one: dict) -> dict[str, bytes]:
    """The files of a ConfigMap or a Secret."""
    if one["kind"] == "ConfigMap":
        return {name: text.encode() for name, text in one.get("data", {}).items()}
    return {name: base64.b64decode(text) for name, text in one.get("data", {}).items()}


def sources_of(volume: dict) -> list[tuple[dict, int]]:
    """The ConfigMaps and Secrets of a volume, with the mode of their files."""
    if "emptyDir" in volume:
        return []
    if "projected" in volume:
        mode = volume["projected"].get("defaultMode", 0o644)
        return [(one, mode) for one in volume["projected"]["sources"]]
    source = {key: value for key, value in volume.items() if key != "name"}
    return [(source, next(iter(source.values())).get("defaultMode", 0o644))]


def image(name: str) -> str:
    """The local image: heliograph/rules:0.1.0 is built as heliograph/rules:dev."""
    if name.startswith("heliograph/"):
        return f"localhost/{name.split(':')[0]}:dev"
    return f"docker.io/library/{name}"
