package measure

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/bench"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/bench/workers"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/proctime"
)

func TestManifestsAreValidAndHaveTheDeployment(t *testing.T) {
	s := site{peer: `/a "b"/benchpeer`}
	functions, err := v1alpha1.Decode([]byte(s.manifest(bench.Deployment{Functions: 3, Instances: 8, Concurrency: 64})), "manifest")
	if err != nil || len(functions) != 3 {
		t.Fatalf("%d functions, %v", len(functions), err)
	}
	for _, fn := range functions {
		v1alpha1.Default(fn)
		if problems := v1alpha1.Validate(fn); len(problems) > 0 {
			t.Errorf("%s: %v", fn.Name, problems)
		}
		if got := fn.Spec.Template; got.Concurrency != 64 || got.Command[0] != s.peer || got.Command[1] != peers.FunctionArgument {
			t.Errorf("%s is %+v", fn.Name, got)
		}
		if got := fn.Spec.Scaling; got.MinInstances != 8 || *got.MaxInstances != 8 {
			t.Errorf("%s scales by %+v", fn.Name, got)
		}
	}
}

func TestScrapesReadWhatIsNeeded(t *testing.T) {
	text := `# HELP go_memstats_mallocs_total Total
go_memstats_mallocs_total 1.2345e+06
go_memstats_alloc_bytes_total 7e+06
windlass_scheduler_instances{function="a} b",function_namespace="default",revision="x",state="idle"} 3
windlass_scheduler_instances{function="b",function_namespace="default",revision="x",state="idle"} 5
windlass_scheduler_instances{function="b",function_namespace="default",revision="x",state="busy"} 7
windlass_scheduler_instances_backed_off{function="b",state="idle"} 9
`
	ops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer ops.Close()
	got, err := scrape(t.Context(), ops.URL)
	if want := (scraped{mallocs: 1_234_500, bytes: 7_000_000, idle: 8}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	text = "go_memstats_mallocs_total many\n"
	if _, err := scrape(t.Context(), ops.URL); err == nil {
		t.Error("many is a number")
	}
}

func TestCertificatesAreThoseThatRolesLoad(t *testing.T) {
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := ca.Write(dir, workers.Domain.Gateway()); err != nil {
		t.Fatal(err)
	}
	if _, err := mtls.Load(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func TestTheEnvironmentDoesNotChangeHowWindlassRuns(t *testing.T) {
	t.Setenv("WINDLASS_DATA_DIR", "/x")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x")
	t.Setenv("TMPDIR_OF_TEST", "kept")
	env := strings.Join(environment(), "\n")
	if strings.Contains(env, "WINDLASS_DATA_DIR") || strings.Contains(env, "OTEL_") || !strings.Contains(env, "TMPDIR_OF_TEST=kept") {
		t.Errorf("the environment is\n%s", env)
	}
}

// A program that ends before it is ready is reported with what it wrote.
func TestAProgramThatDoesNotStartSaysWhy(t *testing.T) {
	if err := supported(); err != nil {
		t.Skip(err)
	}
	starts := make(spawner)
	go starts.run()
	defer close(starts)
	_, _, err := starts.worker(t.Context(), "/bin/sh", "-c", "echo no room >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("it started: %v", err)
	}
	if _, _, err := starts.worker(t.Context(), "/no/such/program"); err == nil {
		t.Error("a program that is missing started")
	}
}

func TestItReadsWhatProcessesUse(t *testing.T) {
	if err := supported(); err != nil {
		t.Skip(err)
	}
	cpu, err := proctime.CPU(os.Getpid())
	if err != nil || cpu <= 0 {
		t.Errorf("CPU time %v, %v", cpu, err)
	}
	switches, err := proctime.Switches(os.Getpid())
	if err != nil || switches <= 0 {
		t.Errorf("%d context switches, %v", switches, err)
	}
	starts := make(spawner)
	go starts.run()
	defer close(starts)
	child, err := starts.start("/bin/sh", "-c", "echo up; read line")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.readLine(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := child.cmd.Process.Pid
	children, err := childrenOf(os.Getpid())
	if err != nil || len(children) != 1 || children[0] != pid {
		t.Errorf("the children are %v, %v; want %d", children, err, pid)
	}
	child.stop()
	if _, err := proctime.Switches(pid); err == nil {
		t.Error("it reads what a process uses that has ended")
	}
}
