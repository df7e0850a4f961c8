"""The message of `up` when everything runs: where to go and how to connect."""

from collections.abc import Mapping


def greeting(env: Mapping[str, str], first: Mapping[str, str], *, with_secrets: bool) -> str:
    """`first` holds what a new installation shows once; it is empty on every later start. Without
    `with_secrets` it names the commands that print the link and the token."""
    console, agents = env["COUNTERSIGN_PUBLIC_URL"], env["COUNTERSIGN_AGENT_URL"]
    endpoint = f"{agents}/mcp/{first.get('toolset', '<toolset>')}"
    token = first["token"] if first and with_secrets else "<token>"
    lines = ["", "Countersign is running. Ctrl-C stops it.", ""]
    lines += [f"  Console   {console}/"]
    if first and with_secrets:
        lines += [
            f"  Sign in   {first['sign_in']}",
            "            (works once, within 24 hours)",
        ]
    else:
        lines += ["            A new sign-in link: python3 manage.py sign_in_link"]
    lines += [f"  Agents    {endpoint}"]
    if first and with_secrets:
        lines += [f"  Token     {token}", "            (of the agent “demo”; shown this once)"]
    else:
        agent = first.get("agent", "<agent>")
        lines += [f"            A new token: python3 manage.py issue_token {agent}"]
    lines += [
        "",
        "Connect a client:",
        "",
        f"  claude mcp add --transport http countersign {endpoint} \\",
        f'    --header "Authorization: Bearer {token}"',
        "",
        f"  curl {endpoint} -H 'Authorization: Bearer {token}' \\",
        "    -H 'Content-Type: application/json' \\",
        "    -H 'Accept: application/json, text/event-stream' \\",
        """    -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'""",
        "",
    ]
    return "\n".join(lines)
