#!/usr/bin/env bash
# Draws docs/images/top.png and docs/images/status.png again: what windlass top and the
# status page show of a Windlass under the load of windlass demo, when a burst comes and one
# function cannot start. The terminal is tmux,
# whose content xterm.js draws; the browser is Chromium without a window.
set -euo pipefail
cd "$(dirname "$0")/.."

columns=150 lines=21

need() {
  command -v "$1" >/dev/null || { echo "pictures need $1; install it first" >&2; exit 1; }
}
for program in tmux curl node npm; do need "$program"; done
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || command -v chromium-headless-shell || true)
[ -n "$browser" ] || { echo "pictures need chromium; install it first" >&2; exit 1; }

work=$(mktemp -d)
demo= terminal=windlass-pictures-$$
cleanup() {
  tmux -L "$terminal" kill-server 2>/dev/null || true
  [ -z "$demo" ] || { kill -INT "$demo" 2>/dev/null && wait "$demo"; } || true
  rm -rf "$work"
}
trap cleanup EXIT

# shot NAME URL WIDTH HEIGHT takes a picture of a page.
shot() {
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$3,$4" --virtual-time-budget=1500 \
    --user-data-dir="$work/browser" --screenshot="$work/$1.png" "$2" >"$work/browser.log" 2>&1 ||
    { cat "$work/browser.log" >&2; exit 1; }
  mkdir -p docs/images
  mv "$work/$1.png" "docs/images/$1.png"
  echo "docs/images/$1.png"
}

(cd hack/pictures && npm ci --no-audit --no-fund --silent)

# The demo's Windlass has a data folder in the folder for temporary files.
TMPDIR=$work bin/windlass demo --minutes 12 --speed 3 >"$work/demo.txt" 2>&1 &
demo=$!
for _ in $(seq 120); do
  kill -0 "$demo" 2>/dev/null || { cat "$work/demo.txt" >&2; exit 1; }
  grep -q '== Replay' "$work/demo.txt" && break
  sleep 1
done
data=$(ls -d "$work"/windlass-demo-*)
ops=$(curl -sS --unix-socket "$data/control.sock" http://windlass/info | sed -E 's/.*"opsURL": *"([^"]+)".*/\1/')

gateway=$(curl -sS --unix-socket "$data/control.sock" http://windlass/info | sed -E 's/.*"gatewayURL": *"([^"]+)".*/\1/')
tmux -L "$terminal" -f /dev/null new-session -d -x $columns -y $lines "bin/windlass top --data-dir '$data' --sort rate"
# Who looks for a minute sees a minute.
for _ in $(seq 60); do
  curl -sS "$ops/status.json" >/dev/null
  sleep 1
done

# One function cannot start, and a burst of calls that wait for something comes to another.
bin/windlass deploy --name invoices --data-dir "$data" -- sh -c 'echo "cannot reach the database"; exit 1' >/dev/null
curl -sS -o /dev/null --max-time 20 "$gateway/function/invoices" || true
printf 'import time\ndef handler(event, context):\n    time.sleep(0.5)\n    return {"ordered": 1}\n' >"$work/orders.py"
bin/windlass deploy --name orders --data-dir "$data" --runtime python3.13 --handler orders.handler --code "$work/orders.py" >/dev/null
curl -sS -o /dev/null "$gateway/function/orders"
# burst has 40 clients call until a file is gone.
burst() {
  touch "$work/bursting"
  for _ in $(seq 40); do
    while [ -e "$work/bursting" ] && curl -sS -o /dev/null "$gateway/function/orders"; do :; done 2>/dev/null &
  done
}
burst
sleep 2

tmux -L "$terminal" capture-pane -e -p >"$work/capture.txt"
node -e '
  const [columns, lines] = process.argv.slice(1).map(Number);
  const text = require("fs").readFileSync(0, "utf8").trimEnd();
  console.log("const what = " + JSON.stringify({ columns, lines, text }) + ";");
' $columns $lines <"$work/capture.txt" >"$work/capture.js"
cp hack/pictures/terminal.html "$work/"
ln -s "$PWD/hack/pictures/node_modules" "$work/node_modules"
shot top "file://$work/terminal.html" 1300 400
rm "$work/bursting"
sleep 5
burst
sleep 1
shot status "$ops/#default/orders" 1300 960
