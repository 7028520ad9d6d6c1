package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

// health is what doctor found of one thing.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn"
	healthFail health = "fail"
)

// finding is one line of doctor.
type finding struct {
	health health
	what   string
	// text says what was found and, unless it is ok, what to do about it.
	text string
}

const (
	// clusterTimeout is how long doctor waits for a cluster.
	clusterTimeout = 5 * time.Second
	// localTimeout is how long doctor waits for the Windlass on this machine.
	localTimeout = 2 * time.Second
)

// doctor examines this machine and the cluster.
type doctor struct{ *finder }

func (d *doctor) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that Windlass can run here and reach its cluster",
		Long: `Check what Windlass needs on this machine, and the cluster of the kubeconfig if
there is one. Each line is ok, warn (some things will not work) or fail, with what
to do about it. The exit code is 1 if a line is fail. It changes nothing.`,
		Example: `  windlass doctor`,
		Args:    noArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			var findings []finding
			if !d.plugin {
				findings = d.examineMachine(cmd.Context())
			}
			return d.printFindings(append(findings, d.examineCluster(cmd.Context())...))
		}),
	}
}

func (d *doctor) printFindings(findings []finding) error {
	colours := map[health]string{healthOK: green, healthWarn: yellow, healthFail: red}
	failed := 0
	var rows [][]cell
	for _, f := range findings {
		if f.health == healthFail {
			failed++
		}
		row := cells(string(f.health), f.what, d.rewriteCommands(f.text))
		row[0].colour = colours[f.health]
		rows = append(rows, row)
	}
	d.table(d.Out, rows)
	if failed > 0 {
		return functionErrorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

// examineMachine looks at what a Windlass on this machine needs.
func (d *doctor) examineMachine(ctx context.Context) []finding {
	findings := []finding{examineAgent()}
	for _, name := range runtimes.Names() {
		findings = append(findings, examineRuntime(ctx, v1alpha1.RuntimeName(name)))
	}
	dir, err := d.resolveDataDir()
	if err != nil {
		return append(findings, finding{healthFail, "data folder", err.Error()})
	}
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	info, err := localapi.NewClient(dir).Info(ctx)
	switch {
	case err == nil:
		return append(findings, examineRunning(info))
	case errors.Is(err, context.DeadlineExceeded):
		return append(findings, finding{healthFail, "windlass up", err.Error()})
	}
	findings = append(findings, examineFolder(dir))
	for _, address := range []struct{ flag, value string }{{"--listen", localapi.DefaultListen}, {"--ops-listen", localapi.DefaultOpsListen}} {
		findings = append(findings, examinePort(address.flag, address.value))
	}
	return append(findings, examineLimits()...)
}

func examineRunning(info localapi.Info) finding {
	text := fmt.Sprintf("%s runs with the data folder %s, gateway %s", info.Version, info.DataDir, info.GatewayURL)
	if info.Version != buildinfo.Version {
		return finding{healthWarn, "windlass up", text + "; this command is " + buildinfo.Version + ": stop that one and start it again"}
	}
	return finding{healthOK, "windlass up", text}
}

func examineAgent() finding {
	path, err := findAgent("")
	if err != nil {
		return finding{healthFail, "agent", err.Error()}
	}
	return finding{healthOK, "agent", path}
}

// examineRuntime tells what runs functions of a runtime here.
func examineRuntime(ctx context.Context, name v1alpha1.RuntimeName) finding {
	program, err := runtimes.Interpreter(name, "")
	if err != nil {
		return finding{healthWarn, string(name), err.Error()}
	}
	if difference := runtimes.Difference(ctx, name, program); difference != "" {
		return finding{healthWarn, string(name), difference + "; put that version first on PATH to have the same here"}
	}
	return finding{healthOK, string(name), program}
}

// examineFolder tells whether the data folder can be written, or made.
func examineFolder(dir string) finding {
	const what = "data folder"
	if _, err := localapi.SocketPath(dir); err != nil {
		return finding{healthFail, what, err.Error()}
	}
	there := dir
	info, err := os.Stat(there)
	for os.IsNotExist(err) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
		info, err = os.Stat(there)
	}
	switch {
	case err != nil:
		return finding{healthFail, what, err.Error() + "; choose another with --data-dir"}
	case !info.IsDir():
		return finding{healthFail, what, there + " is not a folder; choose another with --data-dir"}
	case !writable(there):
		return finding{healthFail, what, there + " cannot be written; see to its rights, or choose another with --data-dir"}
	case there != dir:
		return finding{healthOK, what, dir + ", which will be made"}
	}
	return finding{healthOK, what, dir}
}

func examinePort(flag, address string) finding {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return finding{healthWarn, "port", fmt.Sprintf("%s cannot be had: %v; write windlass up %s 127.0.0.1:0 for another", address, err, flag)}
	}
	_ = listener.Close()
	return finding{healthOK, "port", address + " is free"}
}

// examineCluster looks at the cluster of the kubeconfig, if there is one.
func (d *doctor) examineCluster(ctx context.Context) []finding {
	const what = "cluster"
	if !kubeclient.NamesCluster(d.kubeconfigFiles()) && d.flags.kubeconfig == "" && d.flags.context == "" && !d.plugin {
		return []finding{{healthOK, what, "no kubeconfig names a cluster, so the verbs are about this machine"}}
	}
	settings, err := d.settings()
	if err != nil {
		return []finding{{healthFail, what, err.Error()}}
	}
	d.settingsContext = settings.Context
	access, err := d.access()
	if err != nil {
		return []finding{{healthFail, what, err.Error()}}
	}
	client, err := d.connect(access)
	if err != nil {
		return []finding{{healthFail, what, err.Error()}}
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	version, err := client.ServerVersion(ctx)
	if err != nil {
		return []finding{{healthFail, what, err.Error()}}
	}
	findings := []finding{{healthOK, what, "Kubernetes " + version + " of the context " + access.Context}}
	if _, err := client.List(ctx, access.Namespace); err != nil {
		return append(findings, finding{healthFail, "functions", err.Error()})
	}
	return append(findings, finding{healthOK, "functions", "the cluster knows Functions, and you may list those of the namespace " + access.Namespace})
}
