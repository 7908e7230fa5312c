# The first comparison, without a key: docker build -t memeval . && docker run memeval
# Any other command: docker run -v "$PWD/results:/work" memeval -m system=bm25,rag top_k=3,10
FROM python:3.11-slim

WORKDIR /source
COPY requirements/run.txt requirements/build.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/run.txt \
    && pip install --no-cache-dir --require-hashes -r requirements/build.txt

COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation . && rm -rf /source/*

# Results, memories and caches: mount a folder here to keep them.
RUN useradd --create-home memeval && mkdir /work && chown memeval /work
USER memeval
WORKDIR /work
ENV MEMEVAL_HOME=/work
ENTRYPOINT ["memeval"]
CMD ["-m", "system=rag,bm25,mem0"]
