"""The software bill of materials: CycloneDX 1.5 in JSON, of what the program links, made from Cargo's own resolution.

sbom.py VERSION > threadgres.cdx.json

Build scripts, procedural macros and what only tests use are left out: they are not in the program.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid

PROGRAM = "threadgres"


def resolution() -> dict:
    """Cargo's graph for this platform."""
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    target = re.search(r"^host: (.*)$", host, re.MULTILINE)[1]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def checksums() -> dict[tuple[str, str], str]:
    with open("Cargo.lock", "rb") as lock:
        packages = tomllib.load(lock)["package"]
    return {(p["name"], p["version"]): p["checksum"] for p in packages if "checksum" in p}


def linked(metadata: dict) -> dict[str, list[str]]:
    """The packages that the program links, each with those that it uses itself."""
    packages = {p["id"]: p for p in metadata["packages"]}
    nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
    first = next(p["id"] for p in packages.values() if p["name"] == PROGRAM and p["source"] is None)
    found, left = {}, [first]
    while left:
        name = left.pop()
        if name in found:
            continue
        uses = []
        for dependency in nodes[name]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in t["kind"] for t in packages[dependency["pkg"]]["targets"])
            if is_linked and not is_macro:
                uses.append(dependency["pkg"])
        found[name] = sorted(set(uses))
        left += uses
    return found


def reference(package: dict) -> str:
    """A name in the bill. The workspace's own crates are on no registry, where others may have their names."""
    where = "crates" if package["source"] is None else "pkg:cargo"
    return f"{where}/{package['name']}@{package['version']}"


def component(package: dict, hashes: dict[tuple[str, str], str]) -> dict:
    name, version = package["name"], package["version"]
    out = {"type": "library", "bom-ref": reference(package), "name": name, "version": version}
    if package["source"] is not None:
        out["purl"] = reference(package)
    if package.get("description"):
        out["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # Older manifests write a slash where the standard has OR.
        out["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if (name, version) in hashes:
        out["hashes"] = [{"alg": "SHA-256", "content": hashes[name, version]}]
    if package.get("repository", "") and package["repository"].startswith("https://"):
        out["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return out


def bill(version: str) -> dict:
    metadata = resolution()
    packages = {p["id"]: p for p in metadata["packages"]}
    graph, hashes = linked(metadata), checksums()
    own = next(i for i in graph if packages[i]["name"] == PROGRAM)
    refs = {i: reference(packages[i]) for i in graph}
    others = sorted((i for i in graph if i != own), key=refs.get)
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    program = component(packages[own], hashes) | {"type": "application", "version": version}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([version, *sorted(refs.values())]))}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": program},
        "components": [component(packages[i], hashes) for i in others],
        "dependencies": [{"ref": refs[i], "dependsOn": [refs[u] for u in graph[i]]} for i in [own, *others]],
    }


if __name__ == "__main__":
    json.dump(bill(sys.argv[1]), sys.stdout, indent=1)
    print()
