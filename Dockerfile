# The compiler of rust-version in Cargo.toml. The slim image has what else it takes: a C compiler.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# What is fetched and built stays in a cache of the builder, so the program is copied out of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && cp target/release/dashpot /usr/local/bin/

# Debian slim and nothing smaller, because its bash can ask /healthz.
FROM debian:bookworm-slim
# By these, rediss:// is trusted.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/bin/dashpot /usr/local/bin/
# For the state file, if the rules name one; a volume that is mounted here belongs to the same user.
RUN install -d -o 65532 -g 65532 /var/lib/dashpot
# A number, so that Kubernetes sees that it is not root.
USER 65532:65532
# Rules that are mounted here as dashpot.toml are found.
WORKDIR /etc/dashpot
EXPOSE 8080 8081
# With TLS or on another port: say another, or --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["dashpot"]
# Alone it listens on loopback, which nobody outside of a container reaches. For the same reason nobody
# outside is admin without a token: see docs/deploying.md.
CMD ["serve", "--listen", "0.0.0.0:8080", "--grpc-listen", "0.0.0.0:8081"]
