# A container with nothing but the program: docker build -t switchboard .
# docs/operating.md says how to run it.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w ${VERSION:+-X main.version=$VERSION}" -o /out/switchboard ./cmd/switchboard
# Directories of the container's only user; a new volume takes owner and mode from here.
RUN mkdir -m 700 /out/data && mkdir -m 1777 /out/tmp && chown 65532:65532 /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out /
USER 65532:65532
# Time zones are in the program: -e TZ=Europe/Berlin, or timezone in config.yaml.
ENV SWITCHBOARD_HOME=/data HOME=/data
VOLUME /data
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["/switchboard", "status"]
ENTRYPOINT ["/switchboard"]
CMD ["run"]
