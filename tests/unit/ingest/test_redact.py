"""Every secret here is made up, and put together from pieces so that no scanner takes it for a real one."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.ingest.secret_scan import redact_message, redact_text
from offbook.model.types import Message

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def random_like(length: int) -> str:
    return (LETTERS * (length // len(LETTERS) + 2))[7 : 7 + length - 2] + "7Q"


R20, R24, R36, R43, R60 = (random_like(length) for length in (20, 24, 36, 43, 60))
HEX32 = "0123456789abcdef" * 2
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
PEM_BODY = "\n".join("M" + random_like(63) for _ in range(5))
BEGIN, END = "-----BEGIN {}PRIVATE KEY-----", "-----END {}PRIVATE KEY-----"
RSA = f"{BEGIN.format('RSA ')}\n{PEM_BODY}\nab12==\n{END.format('RSA ')}"
ENCRYPTED = (
    f"{BEGIN.format('RSA ')}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n{PEM_BODY}\n{END.format('RSA ')}"
)
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + R43
DISCORD = "MTk4NjIyNDgzNDcxOTI1MjQ4" + "." + "Cl2FMQ." + random_like(27)

WHOLE = [
    ("aws-key", "AK" + "IA" + "IOSFODNN7EXAMPLE"),
    ("aws-key", "AS" + "IA" + "IOSFODNN7EXAMPLE"),
    ("github-token", "gh" + "p_" + R36),
    ("github-token", "gh" + "o_" + R36),
    ("github-token", "gh" + "u_" + R36),
    ("github-token", "gh" + "s_" + R36),
    ("github-token", "gh" + "r_" + R60),
    ("github-token", "github" + "_pat_" + random_like(22) + "_" + random_like(59)),
    ("gitlab-token", "gl" + "pat-" + R20),
    ("gitlab-token", "gl" + "rt-" + R20),
    ("slack-token", "xo" + "xb-" + "123456789012-1234567890123-" + R24),
    ("slack-token", "xo" + "xe.xoxp-1-" + R60),
    ("slack-token", "xa" + "pp-1-A0123456789-1234567890123-" + HEX32),
    ("openai-key", "s" + "k-" + random_like(48)),
    ("openai-key", "s" + "k-proj-" + random_like(120)),
    ("anthropic-key", "s" + "k-ant-api03-" + random_like(93)),
    ("google-key", "AI" + "za" + random_like(35)),
    ("google-oauth", "ya" + "29." + R60),
    ("google-oauth", "GOC" + "SPX-" + random_like(28)),
    ("google-oauth", "1/" + "/0" + R60),
    ("stripe-key", "sk" + "_live_" + R24),
    ("stripe-key", "rk" + "_test_" + R24),
    ("stripe-key", "wh" + "sec_" + random_like(32)),
    ("twilio-key", "S" + "K" + HEX32),
    ("sendgrid-key", "S" + "G." + random_like(22) + "." + R43),
    ("npm-token", "np" + "m_" + R36),
    ("pypi-token", "py" + "pi-AgE" + "IcHlwaS5vcmc" + random_like(100)),
    ("huggingface-token", "h" + "f_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"),
    ("jwt", JWT),
    ("private-key", RSA),
    ("private-key", ENCRYPTED),
    ("private-key", RSA.replace("\n", "\\n")),
    ("private-key", RSA.replace("\n", "\\\\n")),
    ("private-key", RSA.replace("\n", "\r\n")),
    ("private-key", f"{BEGIN.format('OPENSSH ')}\n{PEM_BODY}\n{END.format('OPENSSH ')}"),
    ("private-key", f"{BEGIN.format('')} {PEM_BODY} {END.format('')}"),
    ("private-key", f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{PEM_BODY}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----"),
    ("private-key", f"{BEGIN.format('EC ')}\n{PEM_BODY}\n{random_like(30)}"),
    ("offbook-token", "off" + "book_" + R43),
]  # fmt: skip

AROUND = [
    "{}",
    "key {} here",
    '{{"value": "{}"}}',
    "export X={}\n",
    "({})",
    "a line\n{}\nanother",
    "见{}。",
    "`{}`,",
    "x:{};",
]

PARTS = [
    ("aws-secret", f"aws_secret_access_key = {AWS_SECRET}", AWS_SECRET),
    ("aws-secret", f'"SecretAccessKey": "{AWS_SECRET}"', AWS_SECRET),
    ("aws-secret", f"AWS_SECRET_ACCESS_KEY={AWS_SECRET}\n", AWS_SECRET),
    ("slack-webhook", "https://hooks.slack.com/" + "services/T00000000/B00000000/" + R24, "T00000000/B00000000/" + R24),
    ("discord-webhook", "https://discord.com/api/webhooks/123456789012345678/" + random_like(68), random_like(68)),
    ("telegram-bot-token", "123456789" + ":AA" + random_like(33), "AA" + random_like(33)),
    ("telegram-bot-token", "https://api.telegram.org/bot123456789" + ":AA" + random_like(33) + "/getMe", "AA" + random_like(33)),
    ("discord-token", DISCORD, DISCORD.partition(".")[2]),
    ("url-password", "postgres://bob:hunter22@db.example:5432/x", "hunter22"),
    ("url-password", "redis://:s3cr3t!@cache:6379/0", "s3cr3t!"),
    ("url-password", "amqp://a%40b:p%2Fw@host", "p%2Fw"),
    ("url-password", "git clone https://bob:abcdef@git.example/x.git now", "abcdef"),
    ("bearer-token", f"Authorization: Bearer {R24}", R24),
    ("bearer-token", "authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("bearer-token", f"curl -H 'Authorization: token {R24}' x", R24),
    ("bearer-token", f'{{"Authorization": "Bearer {R24}"}}', R24),
    ("bearer-token", f"send it as Bearer {R24}.", R24),
    ("password", "password=hunter22", "hunter22"),
    ("password", "PASSWORD: hunter22", "hunter22"),
    ("password", "Password : hunter22", "hunter22"),
    ("password", '"password": "hunter22"', "hunter22"),
    ("password", "{'password': 'hunter22'}", "hunter22"),
    ("password", '{\\"password\\": \\"hunter22\\"}', "hunter22"),
    ("password", '{"password": "pa\\"ss99"}', 'pa\\"ss99'),
    ("password", '{"password": "correct horse battery"}', "correct horse battery"),
    ("password", 'password = "correcthorse"', "correcthorse"),
    ("password", "password = b'correcthorse'", "correcthorse"),
    ("password", "config['password'] = 'correcthorse'", "correcthorse"),
    ("password", "DB_PASSWORD=correcthorse", "correcthorse"),
    ("password", "a=1\nexport DB_PASSWORD=correcthorse\nb=2", "correcthorse"),
    ("password", "user: bob\n  password: swordfish\n", "swordfish"),
    ("password", "https://a.example/login?user=bob&password=swordfish&x=1", "swordfish"),
    ("password", "dsn: host=db password=hunter22,port=1", "hunter22"),
    ("password", "my password is hunter22.", "hunter22"),
    ("password", "The password was: 'swordfish'", "swordfish"),
    ("password", "(password: hunter22)", "hunter22"),
    ("password", "**Password:** `hunter22`", "hunter22"),
    ("password", "**Password**: hunter22", "hunter22"),
    ("password", "Wi-Fi password: Blue-Sky-42!", "Blue-Sky-42"),
    ("password", "password := hunter22", "hunter22"),
    ("password", ":password => 'hunter22'", "hunter22"),
    ("password", "smtp_pass='abcdef1'", "abcdef1"),
    ("password", "passphrase=hun,ter22", "hun,ter22"),
    ("password", "Passwort: geheim123", "geheim123"),
    ("password", "one-time password: 482913", "482913"),
    ("password", "mysql --password hunter22 -u root", "hunter22"),
    ("password", "<password>hunter22</password>", "hunter22"),
    ("password", "密码：hunter22", "hunter22"),
    ("password", "我的密码是hunter22，别告诉别人", "hunter22"),
    ("password", "パスワードはhunter22です", "hunter22"),
    ("password", "비밀번호: hunter22", "hunter22"),
    ("password", "Пароль: hunter22", "hunter22"),
    ("password", "contraseña: hunter22", "hunter22"),
    ("secret", '"api_key": "abcdef123456"', "abcdef123456"),
    ("secret", "API_KEY=abcdef123456", "abcdef123456"),
    ("secret", "X-Api-Key: abc123def456", "abc123def456"),
    ("secret", "client_secret=abcdefgh12345678", "abcdefgh12345678"),
    ("secret", "SECRET_KEY='django-insecure-abc123'", "django-insecure-abc123"),
    ("secret", f"AccountKey={R60}==;EndpointSuffix=core", f"{R60}=="),
    ("secret", f"token: {R24}", R24),
    ("secret", f"GITHUB_TOKEN={R36}", R36),
    ("secret", f'"access_token":"{R36}"', R36),
    ("secret", f"tool --token {R24} run", R24),
]  # fmt: skip

UNCHANGED = [
    "",
    "hello",
    "The quick brown fox jumps over the lazy dog.",
    # hashes and identifiers
    "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)",
    "550e8400-e29b-41d4-a716-446655440000",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
    "offbook_messages_total_by_outcome_and_agent",
    "sk-cube-grid sk-fading-circle-animation-delay",
    "task-force-management-and-something-else-2",
    "some_long_identifier_name_x.method.other_very_long_identifier_name",
    "eyJ is how JSON begins in base64",
    "AKIA is the prefix, as in AKIAXXXX",
    "risk_test_integrationserver01",
    # talk of secrets
    "the password is stored hashed",
    "the password is sha256-hashed, then base64-encoded",
    "the password is 12-character long",
    "token budget: 2000",
    "max_tokens: 4096, tokens=2000",
    "Let me explain how tokens work: each token is about 4 characters.",
    "Password: required",
    "Password: minimum 8 characters",
    "Passwords: keep them safe",
    "forgot your password? click here",
    "the secret: three eggs and butter",
    "The key: it was under the mat",
    "the access key: see the vault",
    "the bearer of this letter is authorised",
    "authorization: basic authentication",
    "use the --password option to log in, or --token instead",
    f"{BEGIN.format('')} is the header of a PEM file",
    "PASS: test_login_flow_2",
    "- `apiPassword`: API/app password for room lookups.",
    # placeholders
    "password=<password>",
    "password=****",
    "password: ••••••••",
    "password=xxxxxxxx",
    "password=your-password",
    "password: YOUR_PASSWORD_HERE",
    "password=$DB_PASSWORD",
    "password: ${DB_PASSWORD}",
    'password: "{{ db_password }}"',
    "password=%(password)s",
    "password=[redacted:password]",
    '"password": "string"',
    '"password": "Enter your new password"',
    '"password": "must be 8 characters or more"',
    '"password": "abc", "user": "bob smith"',
    '"api_key": "OPENAI_API_KEY"',
    'apiKey: "ollama-local"',
    "ANTHROPIC_API_KEY=" + "sk-" + "ant-...",
    "export PASSWORD=",
    "postgres://user:password@localhost/db",
    "postgres://user:$PASS@localhost/db",
    "https://user:pass@provider.example",
    'curl -H "Authorization: Bearer $TOKEN"',
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_TOKEN",
    # code
    "password: str",
    "password: Optional[str] = None",
    "password: SecretStr",
    "password: string;",
    "password: string | null",
    "password VARCHAR(255), password: VARCHAR(255) NOT NULL",
    "password=os.environ['DB_PASSWORD']",
    "password = os.environ.get('DB_PASSWORD')",
    "password = getpass.getpass()",
    "password = payload",
    "password = self.password",
    "login(user, password=value)",
    "connect(password=settings, host=x)",
    "if password == other_password:",
    "password: z.string().min(8)",
    "password: process.env.DB_PASSWORD",
    "Password::min(8)->mixedCase()",
    "password_hash = bcrypt.hash(x)",
    "passwords = [a1, b2]",
    "password: /run/secrets/db_password",
    "PWD=/home/user/project",
    "<input type='password' name='pw'>",
    "api_key=API_KEY",
    "api_key: string",
    "secretName: db-credentials",
    "nextPageToken: abc123def456ghi789",
    "user_token = get_token(request)",
    "{'type': 'object', 'properties': {'password': {'type': 'string'}}}",
    # addresses
    "http://[::1]:8080/x",
    "https://example.com:8080/path@x",
    "git@github.com:org/repo.git, mail bob@example.com",
    "see https://example.com/a/very/long/path/of/a/page.html?x=1#and-a-fragment",
    # other languages
    "我的密码是保密的，不要告诉别人。",
    "密码：请输入您的密码",
    "密码是一个非常重要的东西不要忘记",
    "パスワードは安全に保管してください。",
    "今天天气很好，我们去公园散步吧。" * 20,
    "Пароль обязателен, пароль: обязателен для всех",
]


def redacted(text: str) -> str:
    return redact_text(text)[0]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("kind", "secret"), WHOLE)
def test_tokens_are_known_by_their_spelling(kind: str, secret: str, around: str) -> None:
    text = around.format(secret)
    assert redact_text(text) == (around.format(f"[redacted:{kind}]"), {kind: 1})


@pytest.mark.parametrize(("kind", "text", "secret"), PARTS)
def test_secrets_are_known_by_what_stands_before(kind: str, text: str, secret: str) -> None:
    assert redact_text(text) == (text.replace(secret, f"[redacted:{kind}]"), {kind: 1})


@pytest.mark.parametrize("text", UNCHANGED)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact_text(text) == (text, {})


def test_what_follows_a_cut_off_key_stays() -> None:
    text = f"{BEGIN.format('')}\n{PEM_BODY}\nThis is the rest of the page."
    assert redacted(text) == "[redacted:private-key]\nThis is the rest of the page."


def test_a_key_cut_off_in_display_goes_whole() -> None:
    for cut in ("…", "..."):
        assert redacted(f"{BEGIN.format('')}\n{PEM_BODY}\nabc{cut}") == f"[redacted:private-key]{cut}"


def test_kinds_are_counted() -> None:
    token = "gh" + "p_" + R36
    text = f"{token} and {token}, password=hunter22"
    assert redact_text(text)[1] == {"github-token": 2, "password": 1}


def test_a_known_token_keeps_its_kind_where_it_is_assigned() -> None:
    assert redacted("GITHUB_TOKEN=" + "gh" + "p_" + R36) == "GITHUB_TOKEN=[redacted:github-token]"
    assert redacted("https://x-access-token:" + "gh" + "s_" + R36 + "@github.com/o/r") == (
        "https://x-access-token:[redacted:github-token]@github.com/o/r"
    )
    assert redacted(f"Authorization: Bearer {JWT}") == "Authorization: Bearer [redacted:jwt]"
    one_line = RSA.replace("\n", "\\n")
    assert redacted(f'"private_key": "{one_line}\\n"') == '"private_key": "[redacted:private-key]\\n"'


every_text = [text for _, text in WHOLE] + [text for _, text, _ in PARTS] + UNCHANGED
pieces = st.sampled_from(every_text) | st.text(max_size=10) | st.sampled_from([" ", "\n", "=", ":", '"', "&", "@", "]"])


@given(st.lists(pieces, max_size=6), st.sampled_from(["", " ", "\n", ", "]))
def test_twice_is_once(parts: list[str], glue: str) -> None:
    once = redacted(glue.join(parts))
    assert redact_text(once) == (once, {})


@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    after, counts = redact_text(text)
    assert (after == text) == (not counts)


def test_lone_surrogates_are_taken() -> None:
    assert redacted("\ud800 password=hunter22") == "\ud800 password=[redacted:password]"


@pytest.mark.parametrize(
    "unit",
    [
        "a", "-----BEGIN", BEGIN.format(""), BEGIN.format("") + "\nVersion: ", "eyJ", "eyJ.", "eyJaaaaaaaaaaaa.",
        "://", "://a:", "://a:b", "password=", 'password="', "password='", "password=\\", 'password=\\"', "password is ",
        "password: ", "password=aaaaaa,", "pwd", "secret_key=", "token=", "api_key:", "authorization: bearer ", "Bearer a",
        "sk-", "gl" + "pat-", "gl" + "pat-1.", "off" + "book_-", "sk" + "_live_-", "gh" + "p_", "xa" + "pp-", "1//0-", "AI" + "za", "np" + "m_", "hooks.slack.com/services/","xox" + "b-", "S" + "G.a.", ":AA", "M.", "1//0", "密码是", "[redacted:", "\\n", " ",
    ],
)  # fmt: skip
def test_no_input_takes_forever(unit: str) -> None:
    # Anything that grows with the square of its length would run into the time limit of the suite.
    redact_text(unit * (400_000 // len(unit)))


# ── messages ──


def message(content: Any, **fields: Any) -> Message:
    return Message(role=fields.pop("role", "assistant"), content=content, **fields)


def test_a_message_without_secrets_is_the_same_object() -> None:
    said = message([{"type": "text", "text": "hello"}], name="bob", meta={"channel": "web"})
    assert redact_message(said) == (said, {})
    assert redact_message(said)[0] is said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"password": "hunter22"}, {"password": "[redacted:password]"}),
        ({"password": "correct horse"}, {"password": "[redacted:password]"}),
        ({"pass": "hunter22"}, {"pass": "[redacted:password]"}),
        ({"dbPassword": "swordfish"}, {"dbPassword": "[redacted:password]"}),
        ({"client-secret": "swordfish"}, {"client-secret": "[redacted:secret]"}),
        ({"API Key": "abcdef123456"}, {"API Key": "[redacted:secret]"}),
        ({"access_token": R24}, {"access_token": "[redacted:secret]"}),
        (
            {"headers": {"Authorization": "Basic dXNlcjpwYXNz"}},
            {"headers": {"Authorization": "Basic [redacted:bearer-token]"}},
        ),
        ({"command": "PGPASSWORD=hunter22 psql"}, {"command": "PGPASSWORD=[redacted:password] psql"}),
        ({"id": "gh" + "p_" + R36}, {"id": "[redacted:github-token]"}),
        ({"password": ""}, None),
        ({"password": "$PASSWORD"}, None),
        ({"password": "string"}, None),
        ({"password": "It must be at least 8 characters"}, None),
        ({"password": 12345678}, None),
        ({"secret": "three eggs and butter"}, None),
        ({"apiKey": "ollama-local"}, None),
        ({"token": "the"}, None),
        ({"nextPageToken": R24}, None),
        ({"authorization": "required"}, None),
        ({"password": {"type": "string", "description": "The password of the user"}}, None),
    ],
)
def test_fields_are_known_by_their_name(arguments: dict[str, Any], expected: dict[str, Any] | None) -> None:
    said = message([{"type": "tool-call", "id": "c1", "name": "connect", "arguments": arguments}])
    after, counts = redact_message(said)
    if expected is None:
        assert after is said
    else:
        assert after.content == [{"type": "tool-call", "id": "c1", "name": "connect", "arguments": expected}]
        assert sum(counts.values()) == 1
        assert redact_message(after) == (after, {})


def test_content_name_and_meta_but_not_ids() -> None:
    token = "gh" + "p_" + R36
    said = Message(
        role="tool",
        content=f"got {token}",
        id=token,
        tool_call_id=token,
        name=token,
        meta={"password": "hunter22", "deep": [{"note": token}]},
    )
    after, counts = redact_message(said)
    assert (after.id, after.tool_call_id) == (token, token)
    assert (after.content, after.name) == ("got [redacted:github-token]", "[redacted:github-token]")
    assert after.meta == {"password": "[redacted:password]", "deep": [{"note": "[redacted:github-token]"}]}
    assert counts == {"github-token": 3, "password": 1}
    assert said.content == f"got {token}"


def test_ids_of_blocks_stay() -> None:
    call_id = "s" + "k-" + random_like(48)
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": call_id, "name": "ls", "input": {"key": call_id}},
        {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": call_id}]},
    ]
    after, counts = redact_message(message(blocks))
    assert isinstance(after.content, list)
    assert [after.content[0]["id"], after.content[1]["tool_use_id"]] == [call_id, call_id]
    assert counts == {"openai-key": 2}


def test_binaries_stay() -> None:
    data = base64.b64encode(b"\0" * 30).decode() + "/AK" + "IA" + "IOSFODNN7EXAMPLE=="
    blocks = [
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}},
    ]
    said = message(blocks)
    assert redact_message(said)[0] is said


def test_a_secret_cannot_hide_under_data() -> None:
    after, _ = redact_message(message([{"type": "file", "data": "password=hunter22", "mediaType": "text/plain"}]))
    assert after.content == [{"type": "file", "data": "password=[redacted:password]", "mediaType": "text/plain"}]


def test_arguments_in_a_string() -> None:
    call = {"type": "function", "id": "c1", "function": {"name": "login", "arguments": '{"password": "hunter22"}'}}
    after, counts = redact_message(message([call]))
    assert counts == {"password": 1}
    assert "hunter22" not in str(after.content)
    assert re.search(r"\[redacted:password\]", str(after.content))
