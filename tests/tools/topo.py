#!/usr/bin/env python3
"""`bitrail topo`: text, JSON and SVG of files, descriptions and this machine. See support.py."""
import json
import pathlib
import tempfile
import xml.etree.ElementTree

from support import ARGUMENTS, TOOL, main, require, run

FOLDER = pathlib.Path(ARGUMENTS[0])
ALIBABA = FOLDER / "nccl" / "alibaba-8a100-5cx6.xml"


def topo_text():
    code, out, _ = run(TOOL, "topo", "--file", ALIBABA)
    require(code == 0, "topo exits 0")
    for word in ("NUMA node 1", "NVSwitch fabric of 6", "NV12", "PXB", "PXN",
                 "gpu1  -> mlx5_bond_1  rail 0  PXB, 24 GB/s, 2 PCI switches"):
        require(word in out, f"topo tells '{word}'")
    by_variable = run(TOOL, "topo", BITRAIL_TOPO_FILE=ALIBABA)
    require(by_variable[0] == 0 and "mlx5_bond_4" in by_variable[1], "BITRAIL_TOPO_FILE")
    by_variable = run(TOOL, "topo", NCCL_TOPO_FILE=ALIBABA)
    require(by_variable[0] == 0 and "mlx5_bond_4" in by_variable[1], "NCCL_TOPO_FILE")


def topo_json():
    for path in sorted(FOLDER.glob("*/*.xml")):
        code, out, err = run(TOOL, "topo", "--json", "--file", path)
        if "format3" in path.name:
            require(code == 1 and "version=\"3.0\"" in err, "hwloc 3's XML is refused")
            continue
        require(code == 0, f"topo reads {path.name}")
        [kind] = json.loads(out)["kinds"]
        for gpu in kind["gpus"]:
            require(len(gpu["to_ports"]) == len(kind["network_ports"]), "a route to each port")
    code, out, _ = run(TOOL, "topo", "--json", "--describe", "nodes=32 gpus=8 nics=8 nic=400G")
    whole = json.loads(out)
    require(code == 0 and whole["nodes"] == 32, "nodes of a description")
    require(whole["kinds"][0]["nodes"] == "0-31", "one kind of nodes")
    require(len(whole["kinds"][0]["rails"]) == 8, "a rail for each NIC")


def topo_svg():
    with tempfile.TemporaryDirectory() as folder:
        for index, path in enumerate(sorted(FOLDER.glob("*/*.xml"))):
            if "format3" in path.name:
                continue
            picture = pathlib.Path(folder, f"{index}.svg")
            code, _, _ = run(TOOL, "topo", "--file", path, "--svg", picture)
            require(code == 0, f"a picture of {path.name}")
            root = xml.etree.ElementTree.parse(picture).getroot()
            texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
            require(any(path.name in text for text in texts), "the title names the file")
            for shape in root.iter():
                require("nan" not in " ".join(shape.attrib.values()), "finite coordinates")
        code, _, _ = run(TOOL, "topo", "--file", ALIBABA, "--svg", picture)
        require("rail 3: mlx5_bond_4" in picture.read_text(), "rails are labelled")
    code, _, err = run(TOOL, "topo", "--file", ALIBABA, "--svg", "/no/such/folder/a.svg")
    require(code == 1 and "/no/such/folder" in err, "a picture that cannot be written")


def topo_here():
    code, out, err = run(TOOL, "topo")
    require(code == 0 and "this machine" in out and "NUMA node" in out, f"this machine: {err}")


def topo_bad_input():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bad.xml")
        path.write_text("<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"x\"/></cpu></system>")
        code, _, err = run(TOOL, "topo", NCCL_TOPO_FILE=path)
        require(code == 1 and "bad.xml:3" in err and "busid=\"x\"" in err, "line and attribute")
        require("NCCL_TOPO_FILE" in err, "the variable that names the file")
    code, _, err = run(TOOL, "topo", "--describe", "nodse=4")
    require(code == 1 and "did you mean nodes?" in err, "nearest key")
    code, _, err = run(TOOL, "topo", "--file", "a", "--describe", "nodes=1")
    require(code != 0 and "excludes" in err, "a file or a description")


main(globals())
