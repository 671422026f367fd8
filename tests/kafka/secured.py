"""A broker with TLS, logins and ACLs."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headrace.brokers.kafka.connection import Connection
from headrace.dev.kafka_broker import DevBroker, free_port
from tests.kafka.certificates import make_certificates

PASSWORDS = {"admin": "admin-4711", "ann": "ann-4712"}
"""Admin may do everything, Ann what a test allows her."""
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class SecuredBroker:
    """A broker with a listener of TLS and SASL: SCRAM-SHA-256, PLAIN and OAUTHBEARER without signatures."""

    broker: DevBroker
    address: str
    authority: Path
    admin: AdminClient
    """One that may do everything: it comes by the listener that does not ask."""

    def settings(self, user: str, mechanism: str = "SCRAM-SHA-256", **others: Any) -> dict[str, Any]:
        """Return what a client of a user needs to be let in."""
        login: dict[str, Any] = {"sasl.username": user, "sasl.password": PASSWORDS.get(user, "")}
        if mechanism == "OAUTHBEARER":
            login = {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={user}"}
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": mechanism,
            **login,
            **others,
        }

    def with_token_of_a_function(self, user: str) -> dict[str, Any]:
        """Return the settings of a user whose tokens come from a function."""
        claims = json.dumps({"sub": user, "exp": 4102444800, "iat": 1}).encode()
        token = ".".join(_unpadded(part) for part in (b'{"alg":"none"}', claims)) + "."
        settings = self.settings(user, "OAUTHBEARER")
        del settings["enable.sasl.oauthbearer.unsecure.jwt"]
        return settings | {"oauth_cb": lambda config: (token, 4102444800.0)}

    def allow(self, user: str, operation: AclOperation, name: str, kind: ResourceType = ResourceType.TOPIC) -> None:
        """Allow a user to do something with a topic, or with something else of a name."""
        self._decide(user, operation, name, kind, AclPermissionType.ALLOW)

    def allow_transactions(self, user: str, prefix: str) -> None:
        """Allow a user to write in transactions whose ids begin with something."""
        kind, pattern = ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED
        self._decide(user, AclOperation.WRITE, prefix, kind, AclPermissionType.ALLOW, pattern)

    def forbid(self, user: str, name: str, kind: ResourceType) -> None:
        """Forbid a user everything with something of a name."""
        self._decide(user, AclOperation.ALL, name, kind, AclPermissionType.DENY)

    def _decide(
        self,
        user: str,
        operation: AclOperation,
        name: str,
        kind: ResourceType,
        decided: AclPermissionType,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    ) -> None:
        binding = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, decided)
        for done in self.admin.create_acls([binding]).values():
            done.result()


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """Run a broker while a `with` block runs."""
    certificates = make_certificates(folder)
    port = free_port()
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    listener = "listener.name.sasl_ssl"
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        f"{listener}.ssl.keystore.type": "PEM",
        f"{listener}.ssl.keystore.location": str(certificates.server),
        f"{listener}.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN,OAUTHBEARER",
        f"{listener}.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        f"{listener}.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {users};",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    with DevBroker(folder / "broker", free_port(), settings=settings, listeners={"SASL_SSL": port}) as broker:
        secured = SecuredBroker(broker, f"localhost:{port}", certificates.authority, Connection(broker.address).admin())
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        known = [UserScramCredentialUpsertion(name, scram, password.encode()) for name, password in PASSWORDS.items()]
        for done in secured.admin.alter_user_scram_credentials(known).values():
            done.result()
        yield secured
