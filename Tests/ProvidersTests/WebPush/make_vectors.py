"""Prints the vectors of WebPushEncryptionTests and VAPIDTests that other implementations made.

    python3 -m venv venv && venv/bin/pip install http_ece==1.2.1 py_vapid==1.9.6
    venv/bin/python make_vectors.py

http_ece encrypts, and derives the keys of the padded message. py_vapid signs; its signature is random, so each run
prints another token.
"""

import base64
import hashlib

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from py_vapid import Vapid02


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def private_key(data):
    return ec.derive_private_key(int.from_bytes(data, "big"), ec.SECP256R1())


def public_bytes(key):
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


browser = private_key(bytes(range(1, 33)))
sender = private_key(bytes(range(33, 65)))
auth = bytes(range(100, 116))
salt = bytes(range(16))
message = '{"notification":{"title":"Tür offen 🚪"}}'.encode()

print("p256dh", base64url(public_bytes(browser)))
print("auth", base64url(auth))
body = http_ece.encrypt(
    message, salt=salt, private_key=sender, dh=public_bytes(browser), auth_secret=auth, version="aes128gcm"
)
print("body", base64url(body))

key, nonce = http_ece.derive_key(
    "encrypt", "aes128gcm", salt=salt, key=None, private_key=sender, dh=public_bytes(browser), auth_secret=auth,
    keyid=public_bytes(sender), keylabel="P-256",
)
for size in (2820, 3993):
    padded = body[:86] + AESGCM(key).encrypt(nonce, message + b"\x02" + bytes(size - len(message)), None)
    opened = http_ece.decrypt(padded, private_key=browser, auth_secret=auth, version="aes128gcm")
    assert opened == message
    print("padded", len(padded), hashlib.sha256(padded).hexdigest())

claims = {"aud": "https://push.example", "exp": 1767268800, "sub": "mailto:push@example.com"}
print(Vapid02(sender).sign(claims)["Authorization"])
