# The recourse desk in a container: built from the wheel, run as an ordinary user, nothing written but to /tmp.
#
#   docker build -t ifonly-desk .
#   docker run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#       -p 127.0.0.1:8000:8000 ifonly-desk --demo
#   docker run ... -v "$PWD/models:/models:ro" -e IFONLY_SERVICE_KEY ifonly-desk \
#       --model /models/net.onnx --schema /models/schema.json
#
# EXTRAS are the packages that your models need, e.g. --build-arg EXTRAS=serve,onnx
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG EXTRAS=serve,onnx
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[${EXTRAS}]" && rm -r /wheels \
    && useradd --system --no-create-home --shell /usr/sbin/nologin desk \
    && mkdir -p /opt/ifonly/kernels && chown desk /opt/ifonly/kernels
USER desk
# All kernels (every search, and the writer of proofs) are compiled now, for this kind of processor; on another kind they are compiled again when the desk starts.
ENV NUMBA_CACHE_DIR=/opt/ifonly/kernels IFONLY_COMPILE=first
RUN python -m ifonly.compiling --all
# numba reads its cache only where it may write, so the desk has a copy of its own.
ENV NUMBA_CACHE_DIR=/tmp/kernels
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["/bin/sh", "-c", "cp -r /opt/ifonly/kernels /tmp/ 2>/dev/null; exec ifonly serve --host 0.0.0.0 \"$@\"", "serve"]
CMD ["--demo"]
