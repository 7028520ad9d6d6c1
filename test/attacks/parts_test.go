package attacks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
)

// The program of the tests plays other processes, too.
const (
	part         = "ATTACKS_PART"
	partRuntime  = "runtime"
	partStranger = "stranger"
	partHog      = "hog"
	// targetsVariable names the addresses that a stranger speaks to.
	targetsVariable = "ATTACKS_TARGETS"
	// hogVariable names what a hog takes.
	hogVariable = "ATTACKS_HOG"
)

// rolePlayed is true if the process had a part.
func rolePlayed() bool {
	switch os.Getenv(part) {
	case partRuntime:
		runRuntime()
	case partHog:
		playHog(os.Stdin)
	case partStranger:
		for _, addr := range strings.Split(os.Getenv(targetsVariable), ",") {
			knock(addr)
		}
	default:
		return false
	}
	return true
}

// runRuntime is a runtime client that answers with where it asks, and how often it was
// called.
func runRuntime() {
	api := os.Getenv("AWS_LAMBDA_RUNTIME_API")
	for calls := 1; ; calls++ {
		event, err := http.Get("http://" + api + runtimeAPI + "/invocation/next")
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, event.Body)
		_ = event.Body.Close()
		path := runtimeAPI + "/invocation/" + event.Header.Get("Lambda-Runtime-Aws-Request-Id") + "/response"
		answer, err := http.Post("http://"+api+path, "application/json", strings.NewReader(fmt.Sprintf(`{"api":%q,"calls":%d}`, api, calls)))
		if err != nil {
			return
		}
		_ = answer.Body.Close()
	}
}

// knock prints what answers at an address: the Runtime API, a scheduler, a gateway.
func knock(addr string) {
	client := &http.Client{Timeout: 2 * time.Second}
	if resp, err := client.Get("http://" + addr + "/2018-06-01/ping"); err == nil {
		_, _ = fmt.Fprintf(os.Stdout, "%s answered HTTP with %s\n", addr, resp.Status)
		return
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	watch, err := controlwire.NewSchedulerClient(conn).Watch(ctx, &controlwire.WatchRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		_, _ = fmt.Fprintf(os.Stdout, "%s answered as a scheduler: %v\n", addr, err)
	}
	if raw, err := net.DialTimeout("tcp", addr, 2*time.Second); err == nil {
		defer raw.Close()
		_ = raw.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = raw.Write((&callwire.Hello{CID: agentCID, ProtocolMin: 1, ProtocolMax: 1}).Append(nil))
		if said, err := io.ReadAll(raw); len(said) > 0 {
			_, _ = fmt.Fprintf(os.Stdout, "%s answered as a gateway: %d bytes, %v\n", addr, len(said), err)
		}
	}
}
