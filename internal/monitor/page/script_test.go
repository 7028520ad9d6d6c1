package page

import (
	"os/exec"
	"strings"
	"testing"
)

// browser is as much of one as the script needs to start, with the part of the link behind # as argument.
const browser = `
const vm = require("node:vm");
const element = () => ({ addEventListener() {}, append() {}, setAttribute() {}, replaceChildren() {} });
const context = vm.createContext({
  document: { getElementById: element, createElement: element, createElementNS: element, addEventListener() {} },
  location: { hash: process.argv[1] }, fetch: () => new Promise(() => {}), AbortSignal,
});
vm.runInContext(require("node:fs").readFileSync(0, "utf8"), context);
process.stdout.write(String(vm.runInContext(process.argv[2], context)));
process.exit(0);`

// runScript is what an expression is worth after the script of the page has started with a link.
func runScript(t *testing.T, hash, expression string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js to run the script of the page")
	}
	script, err := assets.ReadFile("assets/page.js")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), node, "-e", browser, hash, expression)
	run.Stdin = strings.NewReader(string(script))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("with the link %s: %v\n%s", hash, err, out)
	}
	return string(out)
}

func TestFunctionsWithoutQuantilesComeLast(t *testing.T) {
	const sorted = `[{}, { p99Seconds: 1 }, {}, { p99Seconds: 2 }].sort(orders.p99).map((f) => f.p99Seconds ?? 0).join()`
	if got := runScript(t, "", sorted); got != "2,1,0,0" {
		t.Errorf("by p99 the order is %s", got)
	}
}

func TestAnyLinkOpensThePage(t *testing.T) {
	for hash, open := range map[string]string{"#default/hello": "default/hello", "#a%2Fb": "a/b", "": "", "#100%": ""} {
		if got := runScript(t, hash, "[...state.open].join()"); got != open {
			t.Errorf("the link %q opens %q, want %q", hash, got, open)
		}
	}
}
