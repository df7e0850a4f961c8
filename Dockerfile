# One image for every process of Countersign; docker-compose.yml says which runs what.

FROM python:3.13-slim AS packages
COPY requirements/product.txt /tmp/product.txt
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/product.txt

FROM python:3.13-slim
# A number, so that a host may check that it is not root's.
RUN useradd --system --uid 10001 --home-dir /data --create-home countersign \
 && install -d -m 700 -o countersign /seal \
 && install -d -m 711 -o countersign /backups
COPY --from=packages /venv /venv
WORKDIR /app
COPY --chown=root:root . .
# The packages are there: manage.py need not look for them.
ENV PATH=/venv/bin:$PATH \
    COUNTERSIGN_NO_BOOTSTRAP=1 \
    COUNTERSIGN_DATA=/data \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
RUN python -m compileall -q /app && python -m config.sbom > /app/sbom.json
VOLUME /data
USER 10001
EXPOSE 8000 8001
CMD ["python", "-m", "config.web", "--host", "0.0.0.0", "--port", "8000"]
