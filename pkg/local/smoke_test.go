package local

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	for name, pkg := range map[string]string{"podagent": "../../cmd/podagent", "probe": "../../test/e2e/probe"} {
		if out, err := exec.Command("go", "build", "-o", dir+"/"+name, pkg).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
	}
	c := DefaultConfig()
	c.DataDir, c.AgentPath, c.Listen, c.OpsListen = dir+"/data", dir+"/podagent", "127.0.0.1:0", "127.0.0.1:0"
	begin := time.Now()
	w, err := Open(c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	fmt.Println("ready after", time.Since(begin))
	fn := &v1alpha1.Function{}
	fn.Name = "probe"
	fn.Spec.Command = []string{dir + "/probe"}
	fmt.Println(w.Store().Apply(fn))
	for i := range 5 {
		begin = time.Now()
		resp, err := http.Get(w.GatewayURL() + fmt.Sprintf("/function/probe/work?ms=5&call=%d", i))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, string(b), resp.Header, time.Since(begin))
	}
	fmt.Println(w.Status(fn))
	begin = time.Now()
	cancel()
	fmt.Println(<-done, "stopped after", time.Since(begin))
	out, _ := exec.Command("sh", "-c", "ls -R "+dir+"/data; cat "+dir+"/data/logs/default/probe/*").CombinedOutput()
	fmt.Println(string(out))
}
