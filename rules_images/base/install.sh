# Installs an image's requirements into a virtual environment, from wheels, without a network. The container that runs
# this becomes the base image. /mnt is a volume of the container, so the image does not contain the wheels.
set -e
export PYTHONDONTWRITEBYTECODE=1
requirements=/mnt/wheels/requirements.txt
python3 -m venv --without-pip /opt/venv
# uv runs from its own wheel, and installs what has the hashes of the lock file, in two thirds of pip's time.
python3 -m zipfile --extract /mnt/wheels/uv-*.whl /mnt/uv
chmod +x /mnt/uv/*.data/scripts/uv
if grep --quiet -e --hash= $requirements; then checks="--no-deps --require-hashes"; fi
# Nobody compiles when a container starts, for its root is read-only.
/mnt/uv/*.data/scripts/uv pip install --python /opt/venv/bin/python --no-config --no-cache --no-index --quiet \
  --find-links /mnt/wheels --compile-bytecode --requirement $requirements $checks
# Where the root is not read-only, a script's requirements.txt is installed by whoever started the emulator: so every
# user may write.
chmod -R a+rwX /opt/venv
