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
func (d *Driver) Run(ctx context.Context) error {
	if err := d.startQueued(); err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(d.forker.forkLoop)
	<-ctx.Done()
	d.stopAll()
	d.running.Wait()
	close(d.forker)
	serving.Wait()
	return nil
}

// Close gives the data folder back. It is for after Run, or for a Driver that is
// not run.
func (d *Driver) Close() error { return d.lock.Close() }

// startQueued starts the instances that were requested before Run.
func (d *Driver) startQueued() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != phaseNew {
		return errors.New("process: Run was called before: make a new Driver")
	}
	d.phase = phaseRunning
	for _, in := range d.instances {
		d.running.Go(func() { d.superviseToExit(in) })
	}
	return nil
}

// stopAll stops all instances and lets no other begin.
func (d *Driver) stopAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase != phaseEnded {
		d.phase = phaseEnded
		close(d.ending)
	}
	for _, in := range d.instances {
		in.requestStop()
	}
}

// Kill kills all processes of all instances, grandchildren included, and lets no other instance
// begin. It returns when they have been reaped. It is for the end of this process, which ends
// its children, but not theirs. It can be called once.
func (d *Driver) Kill() {
	d.stopAll()
	close(d.killed)
	d.running.Wait()
}

// Start begins to start an instance. Before Run, the instance waits for Run; after Run it ends
// at once. An existing instance stays as it is and has one Exit.
func (d *Driver) Start(spec provisioner.InstanceSpec) {
	in := &instance{
		id:   id{string(spec.Function.UID), spec.CID},
		key:  spec.Function.Key(),
		spec: spec,
		stop: make(chan struct{}),
	}
	in.log = d.log.With("function", in.key.String(), "cid", string(in.id.cid))
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.instances[in.id]; there {
		return
	}
	switch d.phase {
	case phaseNew:
		d.instances[in.id] = in
	case phaseRunning:
		d.instances[in.id] = in
		d.running.Go(func() { d.superviseToExit(in) })
	case phaseEnded:
		d.sendExit(provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid, Reason: reasonStopped})
	}
}

// Stop ends an instance: it asks the agent first, then the function, and kills both after
// Config.StopGrace.
func (d *Driver) Stop(functionUID string, cid invocation.CID, _ bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in, there := d.instances[id{functionUID, cid}]; there {
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
func (d *Driver) Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in, there := d.instances[id{functionUID, cid}]; there && !in.ended {
		created = in.created
	}
	return created, time.Time{}
}

func (d *Driver) setCreated(in *instance, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in.created = now
}

// Exits reports every instance that ended. It holds a few hundred; when it is full, only
// ending instances wait for the reader. After Run has ended, exits that do not fit are
// dropped. It is never closed.
func (d *Driver) Exits() <-chan provisioner.Exit { return d.exits }

func (d *Driver) sendExit(e provisioner.Exit) {
	select {
	case d.exits <- e:
		return
	default:
	}
	select {
	case d.exits <- e:
	case <-d.ending:
	}
}

// Instances are those without an Exit so far. Only this process, whose children they are, sees
// them end.
func (d *Driver) Instances() []provisioner.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := make([]provisioner.Key, 0, len(d.instances))
	for of := range d.instances {
		keys = append(keys, provisioner.Key{FunctionUID: of.functionUID, CID: of.cid})
	}
	return keys
}

// markEnded records that only logs are left of an instance.
func (d *Driver) markEnded(in *instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in.ended = true
}

func (d *Driver) removeInstance(in *instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.instances, in.id)
}

// liveCIDs are the instances of the function that have not ended.
func (d *Driver) liveCIDs(key invocation.FunctionKey) map[invocation.CID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	live := map[invocation.CID]bool{}
	for _, in := range d.instances {
		if in.key == key && !in.ended {
			live[in.id.cid] = true
		}
	}
	return live
}
