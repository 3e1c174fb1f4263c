"""What a command doesn't need isn't paid for: no ssh library before there is an ssh connection."""

from __future__ import annotations

import subprocess
import sys

MODULES = "dial failures frame framed keys local proxy recording ssh sshconfig step transfer wire"


def test_no_module_of_hosts_imports_an_ssh_library() -> None:
    imports = "; ".join(f"import xbtasks.host.{name}" for name in MODULES.split())
    program = f"import sys, xbtasks.session; {imports}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "xbtasks" in loaded
    assert not loaded & {"cryptography", "fabric", "invoke", "nacl", "paramiko"}
