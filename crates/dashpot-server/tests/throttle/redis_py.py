"""redis-py as a client: one case by name, at a port. Says nothing if all is well.

Run with warnings as errors; what redis-py logs is a complaint as well.
"""

import asyncio
import logging
import sys
import threading

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

logging.basicConfig(level=logging.WARNING, stream=sys.stderr)

DAY = 86400
# Else it connects once more, after a second and two, whatever was wrong.
AT_ONCE = {"retry": Retry(NoBackoff(), 0)}
port = 0


def connect(**options):
    return redis.Redis(port=port, **options)


def throttle(client, key, *numbers):
    return client.execute_command("CL.THROTTLE", key, *numbers)


def equal(told, expected):
    assert told == expected, f"{told!r} is not {expected!r}"


def refused(call, kind, text):
    try:
        told = call()
    except redis.exceptions.RedisError as error:
        assert type(error) is kind and str(error) == text, f"{error!r} is not {kind} {text!r}"
    else:
        raise AssertionError(f"{told!r} instead of {text!r}")


def each_protocol():
    return {"usual": {}, "two": {"protocol": 2}, "three": {"protocol": 3}}.items()


def plain():
    for name, options in each_protocol():
        client = connect(**options)
        assert client.ping() is True
        equal(client.echo("a"), b"a")
        equal(throttle(client, name, 15, 30, 60), [0, 16, 15, -1, 2])
        equal(throttle(client, name.encode(), 0, 1, DAY, 0), [0, 1, 0, -1, 2])
        equal(throttle(client, b"\xff\0\r\n" + name.encode(), 0, 1, DAY), [0, 1, 0, -1, DAY])
        equal(throttle(client, b"\xff\0\r\n" + name.encode(), 0, 1, DAY), [1, 1, 0, DAY, DAY])
        client.close()


def options():
    """What people set, which makes the client say more when it connects."""
    for name, options in each_protocol():
        client = connect(db=0, client_name=f"me-{name}", health_check_interval=1, socket_keepalive=True, **options)
        equal(throttle(client, name, 15, 30, 60), [0, 16, 15, -1, 2])
        # Text or bytes, by protocol: also with Redis.
        assert client.client_getname() in (f"me-{name}", f"me-{name}".encode())
        assert client.client_id() > 0
        equal(client.info("replication")["role"], "master")
        equal(client.config_get("maxmemory"), {})
        equal(client.config_get("save"), {"save": ""})
        client.close()
    client = redis.Redis.from_url(f"redis://127.0.0.1:{port}/0")
    equal(throttle(client, "url", 15, 30, 60), [0, 16, 15, -1, 2])
    client.close()


def decoded():
    for name, options in each_protocol():
        client = connect(decode_responses=True, **options)
        equal(client.echo("grün"), "grün")
        equal(throttle(client, f"grün-{name}", 15, 30, 60), [0, 16, 15, -1, 2])
        client.close()


def pipelines():
    for name, options in each_protocol():
        client = connect(**options)
        pipeline = client.pipeline(transaction=False)
        for _ in range(500):
            throttle(pipeline, name, 99, 1, DAY)
        told = pipeline.execute()
        equal([five[0] for five in told], [0] * 100 + [1] * 400)
        equal([five[2] for five in told[:100]], list(range(99, -1, -1)))
        # Errors are where they belong.
        throttle(pipeline, name, 99, 1, DAY, 0)
        throttle(pipeline, name, 99, 0, DAY)
        pipeline.ping()
        told = pipeline.execute(raise_on_error=False)
        equal(told[0][0], 0)
        assert isinstance(told[1], redis.exceptions.ResponseError), told
        equal(str(told[1]), "Cell error: Store error: Zero rates are not supported")
        equal(told[2], True)
        # There is no MULTI.
        try:
            with client.pipeline(transaction=True) as transaction:
                throttle(transaction, "multi", 0, 1, DAY)
                transaction.execute()
        except redis.exceptions.ResponseError as error:
            assert "unknown command" in str(error), repr(error)
        else:
            raise AssertionError("there is a MULTI")
        equal(throttle(client, f"after-{name}", 15, 30, 60), [0, 16, 15, -1, 2])
        client.close()


def errors():
    wrong = redis.exceptions.ResponseError
    for _, options in each_protocol():
        client = connect(**options)
        usage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
        refused(lambda: throttle(client, "k", 15, 30), wrong, usage)
        refused(lambda: throttle(client, "k", 1.5, 30, 60), wrong, "Cell error: Store error: Couldn't parse as integer: 1.5")
        refused(lambda: throttle(client, "k", 15, 0, 60), wrong, "Cell error: Store error: Zero rates are not supported")
        refused(lambda: throttle(client, "k", 15, 30, 60, -1), wrong, "Cell error: Store error: quantity must not be negative")
        try:
            client.get("x")
        except wrong as error:
            assert str(error).startswith("unknown command 'GET', with args beginning with: 'x'"), repr(error)
        else:
            raise AssertionError("there is a GET")
        equal(client.ping(), True)
        client.close()
    refused(lambda: connect(db=1, **AT_ONCE).ping(), wrong, "DB index is out of range")


def pool():
    """Many threads, few connections."""
    pool = redis.BlockingConnectionPool(port=port, max_connections=4, timeout=20)
    client = redis.Redis(connection_pool=pool)
    passed = []

    def ask():
        for _ in range(25):
            if throttle(client, "pool", 99, 1, DAY)[0] == 0:
                passed.append(1)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len(passed), 100)
    # A connection that the pool has is used again.
    ids = {client.client_id() for _ in range(20)}
    equal(len(ids), 1)
    pool.disconnect()


def asynchronous():
    async def all():
        for name, options in each_protocol():
            client = redis.asyncio.Redis(port=port, **options)
            equal(await throttle(client, name, 15, 30, 60), [0, 16, 15, -1, 2])
            told = await asyncio.gather(*(throttle(client, f"many-{name}", 9, 1, DAY) for _ in range(50)))
            equal(sorted(five[0] for five in told), [0] * 10 + [1] * 40)
            async with client.pipeline(transaction=False) as pipeline:
                for _ in range(20):
                    throttle(pipeline, f"piped-{name}", 9, 1, DAY)
                told = await pipeline.execute()
            equal([five[0] for five in told], [0] * 10 + [1] * 10)
            try:
                await throttle(client, "k", 15, 0, 60)
            except redis.exceptions.ResponseError as error:
                equal(str(error), "Cell error: Store error: Zero rates are not supported")
            else:
                raise AssertionError("no error")
            await client.aclose()

    asyncio.run(all())


def password(right):
    denied = redis.exceptions.AuthenticationError
    for name, options in each_protocol():
        for said in ({"password": right}, {"username": "default", "password": right}):
            client = connect(**said, **options)
            equal(throttle(client, name, 15, 30, 60, 0), [0, 16, 16, -1, 0])
            client.close()
        text = "invalid username-password pair or user is disabled."
        refused(lambda: connect(password="wrong", **AT_ONCE, **options).ping(), denied, text)
        refused(lambda: connect(username="other", password=right, **AT_ONCE, **options).ping(), denied, text)
    refused(lambda: connect(protocol=2, **AT_ONCE).ping(), denied, "Authentication required.")


def no_password():
    """Who says one though there is none."""
    try:
        connect(password="any", protocol=2, **AT_ONCE).ping()
    except redis.exceptions.AuthenticationError as error:
        assert "without any password configured" in str(error), repr(error)
    else:
        raise AssertionError("AUTH is fine")
    for options in ({"protocol": 2}, {"protocol": 3}):
        client = connect(username="default", password="any", **options)
        equal(throttle(client, f"none-{options['protocol']}", 15, 30, 60), [0, 16, 15, -1, 2])
        client.close()


def encrypted(certificate):
    for name, options in each_protocol():
        client = connect(ssl=True, ssl_ca_certs=certificate, **options)
        equal(throttle(client, name, 15, 30, 60), [0, 16, 15, -1, 2])
        pipeline = client.pipeline(transaction=False)
        for _ in range(200):
            throttle(pipeline, f"piped-{name}", 9, 1, DAY)
        equal([five[0] for five in pipeline.execute()], [0] * 10 + [1] * 190)
        client.close()
    client = redis.Redis.from_url(f"rediss://localhost:{port}", ssl_ca_certs=certificate)
    equal(client.ping(), True)
    client.close()


if __name__ == "__main__":
    case, port = sys.argv[1], int(sys.argv[2])
    globals()[case](*sys.argv[3:])
