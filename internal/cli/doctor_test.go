package cli

import (
	"net"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestDoctorSaysWhatToDo(t *testing.T) {
	dir := write(t, map[string]string{"file": ""})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := listener.Addr().String()
	for name, c := range map[string]struct {
		got  finding
		want health
	}{
		"a folder that is there":         {examineFolder(dir), healthOK},
		"a folder that can be made":      {examineFolder(filepath.Join(dir, "a", "b")), healthOK},
		"a folder below a file":          {examineFolder(filepath.Join(dir, "file", "b")), healthFail},
		"a file":                         {examineFolder(filepath.Join(dir, "file")), healthFail},
		"a free port":                    {examinePort("--listen", "127.0.0.1:0"), healthOK},
		"a port that somebody has":       {examinePort("--listen", taken), healthWarn},
		"an agent that is not beside it": {examineAgent(), healthFail},
	} {
		if c.got.health != c.want || c.got.text == "" {
			t.Errorf("%s: %+v, want %s", name, c.got, c.want)
		}
	}
}

func TestDoctorLooksAtMachineAndCluster(t *testing.T) {
	th := open(t)
	th.run(t, "doctor").expect(t, exitFunction, "out", "fail   agent", "make build", "runs with the data folder "+th.dir, "no kubeconfig names a cluster")
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted))
	s.plugin = true
	s.run(t, "doctor").expect(t, exitOK, "out", "ok   cluster     Kubernetes v1.99 of the context here", "ok   functions")
	s.env["KUBECONFIG"] = filepath.Join(t.TempDir(), "nowhere")
	s.run(t, "doctor").expect(t, exitFunction, "out", "fail   cluster")
}
