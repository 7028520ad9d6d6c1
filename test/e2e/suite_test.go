package e2e

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
)

// binaries is the folder with the command, the agent and the probe.
var binaries string

// labels says which specs are run; "" is all.
var labels string

// skipped are the specs that cannot run on this machine.
var skipped []SpecReport

var _ = ReportAfterEach(func(report SpecReport) {
	if report.State.Is(types.SpecStateSkipped) && report.Failure.Message != "" {
		skipped = append(skipped, report)
	}
})

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.LabelFilter = labels
	RunSpecs(t, "Windlass in local mode", suite, reporter)
	// go test knows of tests only.
	for _, spec := range skipped {
		t.Run(spec.FullText(), func(t *testing.T) { t.Skip(spec.FailureMessage()) })
	}
}

var _ = BeforeSuite(func() {
	binaries = GinkgoT().TempDir()
	for name, pkg := range map[string]string{
		"windlass": "../../cmd/windlass", "podagent": "../../cmd/podagent", "benchpeer": "../../cmd/benchpeer",
		"probe": "./probe",
	} {
		args := append([]string{"build", "-o", filepath.Join(binaries, name)}, buildFlags...)
		out, err := exec.Command("go", append(args, pkg)...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
})

// windlass is a running local Windlass.
type windlass struct {
	*local.Windlass
	runLog string
	end    func() error
	client *http.Client
}

// start starts a Windlass that is stopped, and checked to have left nothing
// behind, when the spec ends.
func start(change ...func(*local.Config)) *windlass {
	GinkgoHelper()
	leaks := goleak.IgnoreCurrent()
	config := local.DefaultConfig()
	config.DataDir = GinkgoT().TempDir()
	config.AgentPath = filepath.Join(binaries, "podagent")
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	for _, c := range change {
		c(&config)
	}
	started, end, err := local.Start(config, slog.New(slog.NewTextHandler(GinkgoWriter, nil)))
	Expect(err).NotTo(HaveOccurred())
	w := &windlass{
		Windlass: started, end: sync.OnceValue(end),
		runLog: filepath.Join(config.DataDir, "ledger"),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 300}},
	}
	DeferCleanup(func() {
		w.stop()
		w.client.CloseIdleConnections()
		Expect(processesOf(binaries)).To(BeEmpty(), "processes left behind")
		Expect(goleak.Find(leaks)).To(Succeed(), "goroutines left behind")
	})
	return w
}

// stop stops Windlass, unless it has ended, and waits until it has.
func (w *windlass) stop() {
	GinkgoHelper()
	Expect(w.end()).To(Succeed())
}

// processesOf lists the processes whose program is in a folder.
func processesOf(dir string) (found []string) {
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && strings.HasPrefix(target, dir) {
			found = append(found, exe+" "+target)
		}
	}
	return found
}

// probe registers the probe as a function.
func (w *windlass) probe(name string, change ...func(*v1alpha1.FunctionSpec)) *v1alpha1.Function {
	GinkgoHelper()
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	fn.Spec.Template.Command = []string{filepath.Join(binaries, "probe")}
	fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "PROBE_LEDGER", Value: w.runLog}}
	for _, c := range change {
		c(&fn.Spec)
	}
	return w.apply(fn)
}

// decidedBy lets one of the algorithms decide on fn.
func decidedBy(algorithm string, fn *v1alpha1.Function) *v1alpha1.Function {
	fn = fn.DeepCopy()
	metav1.SetMetaDataAnnotation(&fn.ObjectMeta, wellknown.AnnotationAlgorithm, algorithm)
	return fn
}

func (w *windlass) apply(fn *v1alpha1.Function) *v1alpha1.Function {
	GinkgoHelper()
	_, err := w.Store().Apply(fn)
	Expect(err).NotTo(HaveOccurred())
	applied, known := w.Store().Get(fn.Key())
	Expect(known).To(BeTrue())
	return applied
}

// change applies a function, and returns when calls go to what it is then.
func (w *windlass) change(fn *v1alpha1.Function) *v1alpha1.Function {
	GinkgoHelper()
	fn = w.apply(fn)
	Eventually(func() []v1alpha1.TrafficStatus { return w.Status(fn).Traffic }, "20s").Should(
		Equal([]v1alpha1.TrafficStatus{{RevisionName: fn.Status.LatestCreatedRevisionName, Weight: 100}}))
	return fn
}

// load is what goes on in the function now.
func (w *windlass) load(fn *v1alpha1.Function) decisionlog.Load {
	GinkgoHelper()
	account, ok := w.Report(fn.Key())
	Expect(ok).To(BeTrue())
	if account.Load == nil {
		return decisionlog.Load{}
	}
	return *account.Load
}

// answer is an answer with its whole body.
type answer struct {
	*http.Response
	body string
}

func (a answer) executed() string { return a.Header.Get("Windlass-Executed") }

// get calls a function and fails the spec if there is no answer at all.
func (w *windlass) get(path string) answer {
	GinkgoHelper()
	return w.do(http.MethodGet, path, nil)
}

func (w *windlass) do(method, path string, body io.Reader, headers ...string) answer {
	GinkgoHelper()
	request, err := http.NewRequest(method, w.GatewayURL()+path, body)
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	a, err := w.send(request)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func (w *windlass) send(request *http.Request) (answer, error) {
	response, err := w.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response, string(body)}, err
}

// run is one execution in the run log.
type run struct {
	call, cid  string
	begin, end int64 // nanoseconds; end is 0 if it did not end
}

// runs reads the run log: the executions of each call.
func (w *windlass) runs() map[string][]run {
	GinkgoHelper()
	text, err := os.ReadFile(w.runLog)
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	found := map[string][]run{}
	for line := range bytes.Lines(text) {
		var event, call, cid string
		var at int64
		_, err := fmt.Sscan(string(line), &event, &call, &cid, &at)
		Expect(err).NotTo(HaveOccurred())
		if event == "begin" {
			found[call] = append(found[call], run{call: call, cid: cid, begin: at})
			continue
		}
		for i := range found[call] {
			if found[call][i].cid == cid && found[call][i].end == 0 {
				found[call][i].end = at
				break
			}
		}
	}
	return found
}

// pids are the processes of a function's instances: "probe" or "podagent".
func pids(program string) (found []int) {
	for _, p := range processesOf(filepath.Join(binaries, program)) {
		var pid int
		if _, err := fmt.Sscanf(p, "/proc/%d/exe", &pid); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func seconds(n float64) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

func bodyOf(s string) io.Reader { return strings.NewReader(s) }

// needs skips the spec on a machine without a program.
func needs(program string) {
	if _, err := exec.LookPath(program); err != nil {
		Skip(program + " is not installed")
	}
}
