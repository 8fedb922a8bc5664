"""The tools that others make, at the versions that are measured, each in a folder of its own: without what they depend
on, so that they run with the torch of the tools; torch_2_0 is an older one, for NNI."""

import subprocess

BOTH = "nvidia-ml-py scipy requests urllib3 charset-normalizer"
PACKAGES = {
    "torch_pruning": "torch-pruning==1.6.1",
    "onnxsim": "onnxsim==0.8.1",
    "fastnas": "nvidia-modelopt==0.47.0 torchprofile==0.0.4 omegaconf antlr4-python3-runtime==4.9.3 pulp==3.3.2 ninja "
    f"pydantic==2.14.4 pydantic-core==2.50.5 annotated-types typing-inspection rich markdown-it-py mdurl {BOTH}",
    "nni": "nni==3.0 typeguard==4.1.2 filelock==3.11.0 astor cloudpickle colorama json-tricks pandas prettytable psutil "
    "PythonWebHDFS responses schema scikit-learn websockets joblib threadpoolctl python-dateutil pytz tzdata six "
    f"wcwidth simplejson docopt tensorboard absl-py grpcio markdown werkzeug tensorboard-data-server {BOTH}",
    "torch_2_0": "torch==2.0.1 torchvision==0.15.2 numpy==1.26.4 setuptools<80 tqdm pyyaml protobuf packaging",
}


def installed(folder, python):
    """{tool: the folder with its packages}; what is there is not installed again."""
    found = {tool: folder / "packages" / tool for tool in PACKAGES}
    for tool, target in found.items():
        alone = [] if tool == "torch_2_0" else ["--no-deps"]
        line = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *alone, "--target", target]
        if not target.exists():
            subprocess.run([*map(str, line), *PACKAGES[tool].split()], check=True)
    return found
