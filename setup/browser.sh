#!/usr/bin/env bash
# Installs Chromium for the browser tests and the screenshots: Debian's if apt-get may be used, else Playwright's.
set -eu
cd "$(dirname "$0")/.."
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    echo "browser: $(command -v "$name")" >&2
    exit 0
  fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-liberation && exit 0
fi
exec .venv/bin/python -m playwright install --only-shell chromium
