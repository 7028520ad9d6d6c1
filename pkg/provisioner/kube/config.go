package kube

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// Defaults of a Config's fields.
const (
	DefaultQPS      = 100
	DefaultBurst    = 200
	DefaultWorkers  = 16
	DefaultMaxQueue = 4096
)

// Config is what a Driver needs to know.
type Config struct {
	// Pod is what all pods have in common.
	Pod podspec.Config
	// QPS is how many pods are created per second in the long run, and Burst
	// how many at once; as many again may be deleted. 0 means the default.
	QPS   float64
	Burst int
	// Workers is how many pods are created at a time; at most a quarter of them for one
	// function. 0 means the default.
	Workers int
	// MaxQueue is how many pods may wait to be created. While as many wait to be deleted, the
	// deletion of a pod that may not exist is dropped. 0 means the default.
	MaxQueue int
}

// Validate names every field that is wrong.
func (c Config) Validate() error {
	errs := []error{c.Pod.Validate()}
	if c.QPS < 0 || c.Burst < 0 {
		errs = append(errs, fmt.Errorf("kube: QPS %v and Burst %d must not be negative: write 0 for the defaults", c.QPS, c.Burst))
	}
	if c.Workers < 0 || c.MaxQueue < 0 {
		errs = append(errs, fmt.Errorf("kube: Workers %d and MaxQueue %d must not be negative: write 0 for the defaults", c.Workers, c.MaxQueue))
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	if c.QPS == 0 {
		c.QPS = DefaultQPS
	}
	if c.Burst == 0 {
		c.Burst = DefaultBurst
	}
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = DefaultMaxQueue
	}
}

// Runtimes looks up the ClusterRuntimes of the cluster.
type Runtimes interface {
	// Get returns the Runtime of that name. It must not be changed.
	Get(name string) (*v1alpha1.ClusterRuntime, bool)
}

// Client talks to the cluster.
type Client interface {
	typed.PodsGetter
	typed.NodesGetter
}

// Deps are what a Driver works with.
type Deps struct {
	// Client has no rate limit of its own.
	Client   Client
	Runtimes Runtimes
	// CA returns the certificate authority for a pod that is created now, in PEM: it may change,
	// and a pod keeps the one that it was created with. Nil means that of Config.Pod.
	CA func() string
	// Registerer is given the metrics.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

func (d Deps) validate() error {
	if d.Client == nil || d.Runtimes == nil || d.Registerer == nil || d.Log == nil {
		return errors.New("kube: Deps needs a Client, Runtimes, a Registerer and a Log")
	}
	return nil
}

const (
	// retryWindow is how long a creation is tried again, from its first
	// attempt.
	retryWindow = 8 * time.Second
	// requestTimeout bounds one request to the API. It is long, since asking
	// again does an API that is slow no good.
	requestTimeout = 10 * time.Second
	// assignTimeout bounds the request by which a spare instance is taken: soon,
	// a pod of its own is as fast.
	assignTimeout = 2 * time.Second
	brokenGrace   = podspec.EndedGrace
	// observeTimeout is how long a created pod may be missing from the informer before the
	// driver asks the API for it.
	observeTimeout = 10 * time.Second
	// endTimeout is how much longer than its grace period a pod may take to
	// end before its node counts as lost.
	endTimeout = 30 * time.Second
	// avoidFor is how long a node is avoided that refused or lost a pod.
	avoidFor = 30 * time.Second
	// rejectedFor is how long the surplus of a pod that was too large for its node still counts
	// there. That is longer than schedulers wait for a change of the nodes before they refuse calls.
	rejectedFor = 10 * time.Second
)
