package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// releaseNamespace is where the chart is installed.
const releaseNamespace = "windlass"

// How long specs wait for what has no limit of its own: on a machine of two cores
// with other work, all takes its time.
const (
	soon  = "40s"
	later = "100s"
)

// repeats is how often a spec repeats what shows the rare, or a figure, and how often where
// time is limited.
func repeats(usual, quick int) int {
	if os.Getenv("WINDLASS_E2E_QUICK") != "" {
		return quick
	}
	return usual
}

// installation is what all specs share, also those of other processes.
type installation struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Registry and Tag are those of the images.
	Registry, Tag string
	// State is the folder of the cluster if it is our own, or else empty.
	State string
	// Dump is the folder for what is known of failures.
	Dump string
}

// shared is the installation, and world how this process reaches it.
var (
	shared installation
	world  *access
)

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	shared = install(ctx)
	text, err := json.Marshal(shared)
	Expect(err).NotTo(HaveOccurred())
	return text
}, func(ctx SpecContext, text []byte) {
	Expect(json.Unmarshal(text, &shared)).To(Succeed())
	world = connect(ctx, shared)
}, NodeTimeout(8*time.Minute))

// A failed spec's namespace is there until its cleanup, which comes after this.
var _ = JustAfterEach(func() {
	if report := CurrentSpecReport(); report.Failed() && report.State != types.SpecStateInterrupted {
		dump(CurrentSpecReport().LeafNodeText)
	}
})

// step prints what is done and how long it took.
func step(name string, work func()) {
	GinkgoHelper()
	began := time.Now()
	fmt.Fprintf(os.Stderr, "         %s ...\n", name)
	work()
	fmt.Fprintf(os.Stderr, "%6.1f s %s\n", time.Since(began).Seconds(), name)
}

// bounded is a context for cleaning up, which is done after an interrupt too.
func bounded(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}
