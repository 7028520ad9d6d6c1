package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestMisuseIsToldWithTheRemedyAndTheUsage(t *testing.T) {
	// Misuse is found without a running Windlass.
	th := quiet(t)
	for args, want := range map[string]string{
		"depoly":                                    "Did you mean this?\n\tdeploy",
		"list --foo":                                "unknown flag: --foo",
		"list -o xml":                               "write -o and one of table, wide, name, json, yaml",
		"completion foo":                            "shell \"foo\" is not known; write bash, zsh, fish or powershell",
		"list hello -A":                             "-A shows all functions, and hello only one",
		"top -o yaml":                               "-o yaml is not known; write -o and one of table, json",
		"list -A -n x":                              "-A and -n exclude each other",
		"top hello":                                 "this command takes none",
		"top -A -n x":                               "-A and -n exclude each other",
		"top --sort age":                            "--sort age is not known; write one of queue, rate, errors, p99, instances, name",
		"top --interval 1ms":                        "--interval 1ms is too short; write at least 200ms",
		"describe":                                  "NAME of the function is missing; windlass list",
		"describe a b":                              "2 arguments were given where one NAME belongs",
		"describe Hello_1":                          `"Hello_1" is not a name`,
		"describe ..":                               `".." is not a name`,
		"describe a/b/c":                            `"a/b/c" is not a name`,
		"describe a/b -n c":                         "--namespace says c",
		"describe a -o table":                       "write -o and one of text",
		"logs":                                      "NAME of the function is missing",
		"logs a --tail -5":                          "-1 for all",
		"logs --invocation x -f":                    "--follow has no effect with --invocation; remove it",
		"logs --invocation x --tail 5":              "--tail has no effect with --invocation; remove it",
		"logs --invocation x --since 5m":            "--since has no effect with --invocation; remove it",
		"logs --invocation x --timestamps":          "--timestamps has no effect with --invocation; remove it",
		"logs --invocation x --agent":               "--agent has no effect with --invocation; remove it",
		"logs a --windlass-namespace x":             "--windlass-namespace has no effect without --invocation; remove it",
		"logs a --tail ten":                         `--tail "ten" is not a whole number; write for example 3`,
		"delete":                                    "NAME of the function is missing",
		"delete a -f b":                             "NAME and -f exclude each other",
		"invoke":                                    "NAME of the function is missing",
		"invoke a b c":                              "quote the body",
		"invoke a b -f c":                           "BODY and -f exclude each other",
		"invoke a --path x":                         "write --path /x",
		"invoke a --path /x#y":                      `--path "/x#y" has a #, and what follows it is never sent; write %23 instead`,
		"invoke a --path /x?a=b␣c":                  `--path "/x?a=b c" has a space in its query; write %20 or + instead`,
		"invoke a -H nonsense":                      "is not a header",
		"invoke a -X B@D":                           "correct -X or --path",
		"deploy":                                    "give a manifest with -f, or a function with --name",
		"deploy fn.yaml":                            "did you mean -f fn.yaml",
		"deploy -f a.yaml b.yaml":                   "repeat -f before every file",
		"deploy -f a.yaml -- x":                     "-f and a command exclude each other",
		"deploy -f a.yaml --name x":                 "-f and --name exclude each other",
		"deploy -- x":                               "write --name NAME -- x",
		"deploy --name x":                           "has nothing to run",
		"deploy --name X -- x":                      `"X" is not a name`,
		"deploy --name x --command a|b":             "sh -c",
		"deploy --name x --command a -- b":          "exclude each other",
		"deploy --name x --runtime r -- b":          "--runtime and a command exclude each other",
		"deploy --name x --runtime r":               "needs --handler",
		"deploy --name x --runtime r --handler h.h": "needs --code",
		"deploy --name x --runtime R --handler h.h --code .": "spec.template.runtimeRef.name",
		"deploy --name x --env A -- x":                       `--env "A" is not KEY=VALUE`,
		"deploy --name x --timeout 5 -- x":                   `--timeout "5" is not a duration; write for example 5s`,
		"deploy --name x --timeout 1.5 -- x":                 `--timeout "1.5" is not a duration; write whole numbers with the units h, m, s and ms`,
		"deploy --name x --slice 0.5s -- x":                  `--slice "0.5s" is not a duration; write whole numbers with the units h, m, s and ms`,
		"check --timeout NaN":                                `--timeout "NaN" is not a duration; write for example 30s`,
		"deploy --name x --min abc -- x":                     `--min "abc" is not a whole number; write for example 3`,
		"deploy --name x --min 99999999999 -- x":             "--min 99999999999 is too large",
		"deploy -f a.yaml --wait 2m":                         "--wait takes its value behind a =; write --wait=2m",
		"deploy --name x --wait 2m -- y":                     "--wait takes its value behind a =; write --wait=2m",
		"deploy --name x --wait y":                           `unexpected argument "y"`,
		"delete x --wait false":                              "--wait takes its value behind a =; write --wait=false",
		"rollout status x --watch false":                     "--watch takes its value behind a =; write --watch=false",
		"up --auth true":                                     "--auth takes its value behind a =; write --auth=true",
		"delete x --wait=perhaps":                            "--wait=perhaps is neither true nor false",
		"validate":                                           "-f is missing",
		"validate -f x --for mars":                           "write local or cluster",
		"scale x":                                            "--min and --max are missing",
		"scale x --max 0":                                    "neither a number of 1 or more nor none",
		"set":                                                "windlass set env NAME KEY=VALUE",
		"set envs x A=1":                                     `"envs" is no command of set; write windlass set env NAME KEY=VALUE`,
		"rollout restart x":                                  `"restart" is no command of rollout; write windlass rollout status, history or undo`,
		"keys lst":                                           `"lst" is no command of keys; write windlass keys create, list or revoke`,
		"keys":                                               "which? write windlass keys create, list or revoke",
		"set env x":                                          "nothing to set",
		"set env x A":                                        "neither KEY=VALUE nor KEY-",
		"list -n UPPER":                                      `"UPPER" is not a namespace`,
		"deploy --name x --wait --dry-run -- x":              "remove one of the two",
		"deploy --name x --timeout 0s -- x":                  "--timeout must be more than 0",
		"deploy --name x --max 0 -- x":                       "--max must be more than 0",
		"deploy --name x --concurrency 9999 -- x":            "spec.template.concurrency",
		"deploy --name x --protocol tcp -- x":                "spec.template.protocol",
		"deploy --name x --class nice -- x":                  `spec.template.scheduling.class: Unsupported value: "nice": supported values: "LatencyCritical", "Standard", "Batch"`,
		"deploy --name x --slice 9ms -- x":                   `spec.template.scheduling.slice: Invalid value: "9ms": must be 10ms to 1h; write for example 10ms`,
		"deploy --name x --slice 50 -- x":                    `--slice "50" is not a duration; write for example 50s`,
		"deploy --name x --slice -5ms -- x":                  `--slice "-5ms" is negative; it must be positive, for example 5ms`,
		"deploy --name x --slice 0s -- x":                    "--slice must be more than 0",
		"deploy --name x --class Batch --slice 50ms -- x":    "spec.template.scheduling.slice: Forbidden: calls of class Batch always yield, so they have no slice; remove slice, or write class: Standard",
		"up now":                  "this command takes none",
		"up --listen 8080":        "write host:port",
		"up --log-level loud":     "write debug, info, warn or error",
		"up --log-format xml":     "write console, text or json",
		"up --max-body-size big":  "for example 64Mi",
		"up --max-body-size 0":    "for example 64Mi",
		"demo --speed 0":          "must be more than 0",
		"demo --minutes 0":        "at least 1",
		"demo --trace nowhere":    "there is no such folder",
		"demo --examples nowhere": "run this in the project's folder",
		"version please":          "this command takes none",
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Fields(args)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "␣", " ")
			}
			got := th.run(t, words...)
			got.expect(t, exitUsage, "err", want, "usage: windlass ", "--help")
			if got.out != "" || strings.Contains(got.err, "Flags:") {
				t.Errorf("more than the usage line is printed:\n%s%s", got.out, got.err)
			}
		})
	}
}

func TestWithoutWindlassEveryVerbSaysHowToStartIt(t *testing.T) {
	th := quiet(t)
	manifest := filepath.Join(write(t, map[string]string{"f.yaml": yamlOf("f", "template: {command: [x]}")}), "f.yaml")
	for _, args := range []string{"list", "describe f", "logs f", "invoke f", "delete f", "deploy -f " + manifest} {
		t.Run(args, func(t *testing.T) {
			th.run(t, strings.Fields(args)...).expect(t, exitPlatform, "err", "no Windlass runs with the data folder "+th.dir, "windlass up", "--data-dir")
		})
	}
}

func TestAFunctionThatIsNotThereSuggestsThoseThatAre(t *testing.T) {
	th := open(t)
	th.run(t, "describe", "hello").expect(t, exitPlatform, "err", "there is no function default/hello", "none is deployed yet", "windlass deploy")
	th.put(t, "default/hello", nil)
	th.put(t, "team/other", nil)
	for _, verb := range []string{"describe", "logs", "invoke", "delete"} {
		th.run(t, verb, "helol").expect(t, exitPlatform, "err", "there is no function default/helol; did you mean hello?", "windlass list")
	}
	th.run(t, "describe", "other").expect(t, exitPlatform, "err", "did you mean team/other?")
	got := th.run(t, "describe", "payments")
	got.expect(t, exitPlatform, "err", "there is no function default/payments; see windlass list --all-namespaces")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	empty := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"deploy of a file that is missing":     {[]string{"deploy", "-f", "nowhere.yaml"}, "nowhere.yaml: there is no such file or folder"},
		"deploy of a folder without functions": {[]string{"deploy", "-f", empty}, "no Function is in this folder; a manifest is a .yaml"},
		"deploy of nothing from stdin":         {[]string{"deploy", "-f", "-"}, "standard input: is empty"},
		"delete of a file that is missing":     {[]string{"delete", "-f", "nowhere.yaml"}, "there is no such file"},
		"invoke with a body that is missing":   {[]string{"invoke", "f", "-f", "nowhere.json"}, "nowhere.json: no such file or directory; check the path"},
		"up with a file that is missing":       {[]string{"up", "-f", "nowhere.yaml"}, "nowhere.yaml: there is no such file"},
		"up without the agent's program":       {[]string{"up", "--agent", filepath.Join(empty, "podagent")}, "make build"},
		"up with a folder for an agent":        {[]string{"up", "--agent", empty}, "is not a program"},
	} {
		t.Run(name, func(t *testing.T) {
			got := th.play(t, strings.NewReader(""), Programs{}, c.args...)
			got.expect(t, exitUsage, "err", c.want)
			if strings.Contains(got.err, "usage:") {
				t.Error("the usage does not help with a file")
			}
		})
	}
}

func TestADataFolderTooDeepForASocketNamesTheFlag(t *testing.T) {
	deep := "/" + strings.Repeat("deep/", 30)
	th := quiet(t)
	th.run(t, "list", "--data-dir", deep).expect(t, exitPlatform, "err", "--data-dir", "shorter")
	th.run(t, "up", "--data-dir", deep).expect(t, exitUsage, "err", "--data-dir", "shorter")
}

func TestNearest(t *testing.T) {
	var functions []v1alpha1.Function
	for _, name := range []string{"hello", "hello-world", "help", "resize", "a", "b"} {
		fn := v1alpha1.Function{}
		fn.Namespace, fn.Name = "default", name
		functions = append(functions, fn)
	}
	for name, want := range map[string]string{
		"helo": "hello help", "hell": "hello help hello-world", "rezise": "resize", "thumbnail": "", "resize-photo": "", "ab": "a b",
	} {
		f := &finder{home: "default"}
		got := strings.Join(f.nearest(invocation.FunctionKey{Namespace: "default", Name: name}, functions), " ")
		if got != want {
			t.Errorf("nearest(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestNearestNamesTheOwnNamespaceBeforeOtherTenants(t *testing.T) {
	var functions []v1alpha1.Function
	for _, namespace := range []string{"a", "b", "c", "mine", "z"} {
		fn := v1alpha1.Function{}
		fn.Namespace, fn.Name = namespace, "hello"
		functions = append(functions, fn)
	}
	f := &finder{home: "mine"}
	got := strings.Join(f.nearest(invocation.FunctionKey{Namespace: "mine", Name: "helo"}, functions), " ")
	if want := "hello a/hello b/hello"; got != want {
		t.Errorf("nearest = %q, want %q", got, want)
	}
}
