package node

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// sampleEvery is how often the node agent samples the instances that its core watches.
const sampleEvery = 5 * time.Millisecond

// Tickets lets the product decide: a core hands out core tickets to the calls of a node that is
// busy. Calls with a ticket, and those that are in no low band, share the cores; those in the
// low band share what they leave. Each call has an instance of its own; an instance that is
// through with its call takes the function's next one.
type Tickets struct {
	Params callorder.Params
	// Known are processor times of functions that the core has learnt a minute before the first call.
	Known map[string]time.Duration
	// ByDuration reports as an instance's processor time how long its calls took since they
	// began, whatever they did: what Zuk, Przybylski and Rzadca measure. Otherwise it is exact.
	ByDuration bool
	// Kernel shares the core; nil for ideal sharing.
	Kernel *Kernel
	// ExemptBelow is the mean processor time of a function's calls below which its instances cease to ask; 0 if all ask.
	ExemptBelow time.Duration
	// Groups divides the cores: calls in the low band share a group of their own in place of what
	// the others leave. nil is no groups.
	Groups *CoreGroups
	// Moved is called after each move of a core; it may be nil.
	Moved func()
	// Observe is called with each call that changes its band; it may be nil.
	Observe func(call Call, change callorder.SetBand)
}

type tickets struct {
	Tickets
	w           *world
	core        *callorder.Core
	normal, low station
	instances   []*instance // by ID, from 1 on
	idle        map[string][]*instance
	of          map[*job]*instance
	asks        uint64
	watched     []callorder.InstanceID
	groups      *groups
	// ahead is what the core's clock shows at the beginning.
	ahead time.Duration
}

// instance runs one call at a time.
type instance struct {
	id   callorder.InstanceID
	job  *job
	ask  uint64
	home station
	// exempt says that it does not ask.
	exempt bool
	// before is the processor time of its earlier calls.
	before time.Duration
	// sampled is the processor time that the core was told last, and repeated how often in a row.
	sampled  time.Duration
	repeated int
}

func (t Tickets) start(w *world, cores int) (decisions, error) {
	if t.Params.Cores != cores {
		return nil, fmt.Errorf("node: the params are for %d cores, and the node has %d", t.Params.Cores, cores)
	}
	core, err := callorder.New(t.Params)
	if err != nil {
		return nil, err
	}
	s := &tickets{Tickets: t, w: w, core: core, idle: map[string][]*instance{}, of: map[*job]*instance{}}
	switch {
	case t.Kernel != nil:
		var k *kernel
		if k, err = t.Kernel.core(w, cores); err == nil {
			s.normal, s.low = k.normal, k.low
		}
	case t.Groups != nil:
		err = s.divide(cores)
	default:
		g := newGroup(float64(cores), 2)
		w.groups = append(w.groups, g)
		s.normal, s.low = g.bands[0], g.bands[1]
	}
	if err != nil {
		return nil, err
	}
	s.tell(callorder.ModeChanged{Busy: true})
	s.teach()
	s.ahead = taughtBefore
	if p := t.Params; p.Preempt || p.BlockedAfter > 0 || p.Slice.Rule != callorder.SliceOff {
		w.after(sampleEvery.Seconds(), s.sample)
	}
	return s, nil
}

// taughtBefore is how long before the beginning calls teach the core: such a call must not count for Fair-Choice, which counts a minute.
const taughtBefore = time.Minute

// teach has one call of each known function run before anything else.
func (t *tickets) teach() {
	taught := map[string]bool{}
	for _, j := range t.w.jobs {
		known, ok := t.Known[j.Function]
		if !ok || taught[j.Namespace+"/"+j.Function] {
			continue
		}
		taught[j.Namespace+"/"+j.Function] = true
		i := t.instanceFor(j)
		t.asks++
		t.tell(callorder.Asked{Instance: i.id, Ask: t.asks})
		i.before += known
		t.tell(callorder.Ended{Instance: i.id, Usage: i.before})
		t.rest(i, j)
	}
}

// instanceFor is an idle instance of the call's function, or a new one.
func (t *tickets) instanceFor(j *job) *instance {
	key := j.Namespace + "/" + j.Function
	if idle := t.idle[key]; len(idle) > 0 {
		i := idle[len(idle)-1]
		t.idle[key] = idle[:len(idle)-1]
		return i
	}
	i := &instance{id: callorder.InstanceID(len(t.instances) + 1), home: t.normal}
	t.instances = append(t.instances, i)
	t.tell(callorder.Joined{Instance: i.id, Namespace: j.Namespace, Function: j.Function})
	return i
}

// rest makes an instance idle.
func (t *tickets) rest(i *instance, of *job) {
	key := of.Namespace + "/" + of.Function
	t.idle[key] = append(t.idle[key], i)
}

func (t *tickets) add(j *job) {
	i := t.instanceFor(j)
	t.of[j] = i
	i.job, i.repeated = j, 0
	if i.exempt {
		t.w.launch(j, i.home)
		return
	}
	t.asks++
	i.ask = t.asks
	t.tell(callorder.Asked{Instance: i.id, Ask: i.ask, Usage: i.before})
}

func (t *tickets) stop(j *job) {
	i := t.of[j]
	delete(t.of, j)
	i.before = t.usage(i)
	i.job = nil
	if i.exempt {
		t.tell(callorder.Sampled{Instance: i.id, Usage: i.before})
	} else {
		t.tell(callorder.Ended{Instance: i.id, Usage: i.before})
		t.exempt(i, j)
	}
	t.rest(i, j)
	j.home = i.home
}

// exempt lets an instance cease to ask if calls of its function are very short.
func (t *tickets) exempt(i *instance, of *job) {
	mean, known := t.core.Mean(of.Namespace, of.Function)
	if known && mean < t.ExemptBelow && t.core.MayBeExempt(t.now(), i.id) {
		i.exempt = true
		t.tell(callorder.Exempted{Instance: i.id})
	}
}

// usage is the processor time of an instance.
func (t *tickets) usage(i *instance) time.Duration {
	switch {
	case i.job == nil || i.job.launched < 0:
		return i.before
	case t.ByDuration:
		return i.before + ofSeconds(t.w.now-i.job.launched)
	}
	return i.before + ofSeconds(i.job.computed())
}

// sample tells the core what the instances used that it watches. It leaves out those that stand
// still for longer than the core needs to notice: hundreds may sleep for minutes.
func (t *tickets) sample() {
	t.watched = t.core.AppendWatched(t.watched[:0])
	for _, id := range t.watched {
		i := t.instances[id-1]
		usage := t.usage(i)
		if usage != i.sampled {
			i.sampled, i.repeated = usage, 0
		}
		if i.repeated++; i.repeated <= t.Params.BlockedAfter+2 {
			t.tell(callorder.Sampled{Instance: id, Usage: usage})
		}
	}
	t.w.after(sampleEvery.Seconds(), t.sample)
}

// now is the time on the core's clock.
func (t *tickets) now() time.Duration { return t.ahead + ofSeconds(t.w.now) }

// tell steps the core, and carries out what it decides.
func (t *tickets) tell(e callorder.Event) {
	for _, effect := range t.core.Step(t.now(), e) {
		switch effect := effect.(type) {
		case callorder.Grant:
			if i := t.instances[effect.Instance-1]; i.job != nil && i.ask == effect.Ask {
				t.w.launch(i.job, i.home)
			}
		case callorder.SetBand:
			t.band(t.instances[effect.Instance-1], effect)
		case callorder.AskAgain:
			t.instances[effect.Instance-1].exempt = false
		}
	}
}

func (t *tickets) band(i *instance, change callorder.SetBand) {
	i.home, i.repeated = t.normal, 0
	if change.Low {
		i.home = t.low
	}
	if i.job == nil {
		return
	}
	if i.job.launched >= 0 {
		t.w.move(i.job, i.home)
	}
	if t.Observe != nil {
		t.Observe(i.job.Call, change)
	}
}
