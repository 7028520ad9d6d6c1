package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// exitsBuffer is how many Exits wait for their reader.
const exitsBuffer = 256

var (
	_ provisioner.Driver         = (*Driver)(nil)
	_ provisioner.StartObserver  = (*Driver)(nil)
	_ provisioner.InstanceLister = (*Driver)(nil)
)

// phase is how far Run has come.
type phase int

const (
	phaseNew phase = iota
	phaseRunning
	phaseEnded
)

// Driver runs instances as processes. It is safe for concurrent use.
type Driver struct {
	config   Config
	launcher Launcher
	groups   Groups // may be nil
	log      *slog.Logger

	forker  forker
	limiter *limiter
	ports   *ports
	lock    *os.File

	logSizes logSizes

	exits chan provisioner.Exit
	// ending is closed when Run begins to end, and killed by Kill.
	ending, killed chan struct{}

	mu        sync.Mutex
	phase     phase
	instances map[id]*instance
	// running counts the goroutines of instances.
	running sync.WaitGroup
}

// New makes a Driver, takes possession of the data folder, and removes the
// instances' folders that a dead predecessor left there. It fails if the
// folder belongs to another Driver or if the agent's program is missing. Close
// gives the folder back.
func New(config Config, deps Deps) (*Driver, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	if config.StopGrace == 0 {
		config.StopGrace = DefaultStopGrace
	}
	var err error
	if config.DataDir, err = filepath.Abs(config.DataDir); err != nil {
		return nil, fmt.Errorf("process: DataDir: %w", err)
	}
	if config.AgentPath, err = findAgent(config.AgentPath); err != nil {
		return nil, err
	}
	lock, err := lockDataDir(config.DataDir)
	if err != nil {
		return nil, err
	}
	return &Driver{
		config:    config,
		launcher:  deps.Launcher,
		groups:    deps.Groups,
		log:       deps.Logger,
		forker:    make(forker),
		limiter:   newLimiter(deps.Logger),
		ports:     newPorts(freePort),
		lock:      lock,
		logSizes:  logSizes{open: map[logName]*os.File{}},
		exits:     make(chan provisioner.Exit, exitsBuffer),
		ending:    make(chan struct{}),
		killed:    make(chan struct{}),
		instances: map[id]*instance{},
	}, nil
}

func findAgent(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("process: AgentPath must be the agent's program: %w", err)
	}
	// The agent starts in another folder than this one.
	return filepath.Abs(found)
}

// Run runs the instances until ctx ends; then it stops them all and returns
// when their processes have been reaped. It can be called once. The data folder
// stays the Driver's: what else works in it may still have to end.
func (r *Driver) Run(ctx context.Context) error {
	if err := r.startQueued(); err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(r.forker.forkLoop)
	<-ctx.Done()
	r.stopAll()
	r.running.Wait()
	close(r.forker)
	serving.Wait()
	return nil
}

// Close gives the data folder back. It is for after Run, or for a Driver that is
// not run.
func (r *Driver) Close() error { return r.lock.Close() }

// startQueued starts the instances that were requested before Run.
func (r *Driver) startQueued() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase != phaseNew {
		return errors.New("process: Run was called before: make a new Driver")
	}
	r.phase = phaseRunning
	for _, in := range r.instances {
		r.running.Go(func() { r.superviseToExit(in) })
	}
	return nil
}

// stopAll stops all instances and lets no other begin.
func (r *Driver) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase != phaseEnded {
		r.phase = phaseEnded
		close(r.ending)
	}
	for _, in := range r.instances {
		in.requestStop()
	}
}

// Kill kills all processes of all instances, grandchildren included, and lets no other instance
// begin. It returns when they have been reaped. It is for the end of this process, which ends
// its children, but not theirs. It can be called once.
func (r *Driver) Kill() {
	r.stopAll()
	close(r.killed)
	r.running.Wait()
}

// Start begins to start an instance. Before Run, the instance waits for Run; after Run it ends
// at once. An existing instance stays as it is and has one Exit.
func (r *Driver) Start(spec provisioner.InstanceSpec) {
	in := &instance{
		id:   id{string(spec.Function.UID), spec.CID},
		key:  spec.Function.Key(),
		spec: spec,
		stop: make(chan struct{}),
	}
	in.log = r.log.With("function", in.key.String(), "cid", string(in.id.cid))
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.instances[in.id]; there {
		return
	}
	switch r.phase {
	case phaseNew:
		r.instances[in.id] = in
	case phaseRunning:
		r.instances[in.id] = in
		r.running.Go(func() { r.superviseToExit(in) })
	case phaseEnded:
		r.sendExit(provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid, Reason: reasonStopped})
	}
}

// Stop ends an instance: it asks the agent first, then the function, and kills both after
// Config.StopGrace.
func (r *Driver) Stop(functionUID string, cid invocation.CID, _ bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in, there := r.instances[id{functionUID, cid}]; there {
		in.requestStop()
	}
}

// requestStop asks an instance to end. The Driver's lock must be held.
func (in *instance) requestStop() {
	if !in.stopping {
		in.stopping = true
		close(in.stop)
	}
}

// Progress returns when the processes of a running instance were started; it has no pod whose
// network it would wait for.
func (r *Driver) Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in, there := r.instances[id{functionUID, cid}]; there && !in.ended {
		created = in.created
	}
	return created, time.Time{}
}

func (r *Driver) setCreated(in *instance, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.created = now
}

// Exits reports every instance that ended. It holds a few hundred; when it is full, only
// ending instances wait for the reader. After Run has ended, exits that do not fit are
// dropped. It is never closed.
func (r *Driver) Exits() <-chan provisioner.Exit { return r.exits }

func (r *Driver) sendExit(e provisioner.Exit) {
	select {
	case r.exits <- e:
		return
	default:
	}
	select {
	case r.exits <- e:
	case <-r.ending:
	}
}

// Instances are those without an Exit so far. Only this process, whose children they are, sees
// them end.
func (r *Driver) Instances() []provisioner.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]provisioner.Key, 0, len(r.instances))
	for of := range r.instances {
		keys = append(keys, provisioner.Key{FunctionUID: of.functionUID, CID: of.cid})
	}
	return keys
}

// markEnded records that only logs are left of an instance.
func (r *Driver) markEnded(in *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.ended = true
}

func (r *Driver) removeInstance(in *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.instances, in.id)
}

// liveCIDs are the instances of the function that have not ended.
func (r *Driver) liveCIDs(key invocation.FunctionKey) map[invocation.CID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := map[invocation.CID]bool{}
	for _, in := range r.instances {
		if in.key == key && !in.ended {
			live[in.id.cid] = true
		}
	}
	return live
}
