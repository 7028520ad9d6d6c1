package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func needsLinux(t *testing.T, reason string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("on %s %s", runtime.GOOS, reason)
	}
}

// amounts is a list of what is not empty.
func amounts(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if amount != "" {
			list[name] = resource.MustParse(amount)
		}
	}
	return list
}

func TestLimitsOf(t *testing.T) {
	for name, c := range map[string]struct {
		cpu, memory string
		want        limits
	}{
		"none":                      {"", "", limits{}},
		"zero is none":              {"0", "0", limits{}},
		"a part of a core is one":   {"1m", "", limits{cores: 1}},
		"whole cores stay":          {"2", "", limits{cores: 2}},
		"parts are rounded up":      {"2001m", "", limits{cores: 3}},
		"memory has its headroom":   {"", "64Mi", limits{dataBytes: 64<<20 + dataHeadroom}},
		"even a byte of memory has": {"", "1", limits{dataBytes: 1 + dataHeadroom}},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitsOf(amounts(c.cpu, c.memory))
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestPickCoresGoesRound(t *testing.T) {
	cores := []int{0, 2, 4, 6}
	for name, c := range map[string]struct {
		next, n int
		picked  []int
		after   int
	}{
		"from the first":            {0, 1, []int{0}, 1},
		"over the end":              {3, 2, []int{6, 0}, 1},
		"none is asked for":         {1, 0, nil, 1},
		"all are no restriction":    {1, 4, nil, 1},
		"as are more than there is": {1, 9, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			picked, after := pickCores(cores, c.next, c.n)
			if diff := cmp.Diff(c.picked, picked); diff != "" || after != c.after {
				t.Errorf("next is %d, want %d; picked (-want +got):\n%s", after, c.after, diff)
			}
		})
	}
}

// TestAMemoryLimitStopsAnAllocation lets tail(1) remember more than the limit
// allows; the detector of races takes too much memory to be limited itself.
func TestAMemoryLimitStopsAnAllocation(t *testing.T) {
	needsLinux(t, "memory is not limited")
	for _, program := range []string{"sh", "head", "tail"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	for limit, want := range map[string]string{
		"":     "the function exited with status 0",
		"16Mi": "the function exited with status 1",
	} {
		t.Run("limit "+limit, func(t *testing.T) {
			th := newHarness(t, noTimeout)
			gate := filepath.Join(t.TempDir(), "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			spec := specFor(th.path, "c-1")
			spec.Function.Spec.Template.Command = []string{"sh", "-c",
				`read go < "$0"; head -c 200000000 /dev/zero | tail -c 180000000 > /dev/null`, gate}
			spec.Function.Spec.Template.Resources.Limits = amounts("", limit)
			th.Start(spec)
			// The agent is started when the function has its limits.
			th.await(roleAgent, "c-1")
			opened, err := os.OpenFile(gate, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if _, err := opened.WriteString("go\n"); err != nil {
				t.Fatal(err)
			}
			e := th.exit()
			if e.Reason != want {
				t.Errorf("reason %q, want %q", e.Reason, want)
			}
			if limit != "" && !strings.Contains(strings.Join(e.LogTail, "\n"), "memory") {
				t.Errorf("LogTail %q does not speak of memory", e.LogTail)
			}
		})
	}
}
