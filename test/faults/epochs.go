package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// epochWatch notes every owner of a slot that etcd names, and that a scheduler
// says it knows of.
type epochWatch struct {
	etcd store
	// watch is that of the row.
	watch *slotWatch

	mu   sync.Mutex
	seen []verdict.Epoch
	last map[sight]uint64
}

// sight is who looks at which slot.
type sight struct {
	observer string
	slot     int
}

// askEvery is how often schedulers are asked.
const askEvery = 500 * time.Millisecond

// store is what is used of etcd.
type store interface {
	clientv3.KV
	clientv3.Watcher
}

// watchEpochs begins to ask schedulers, and goes on until the process ends.
func watchEpochs(ctx context.Context, l *lab.Lab) (*epochWatch, error) {
	client, err := l.Etcd.Client()
	if err != nil {
		return nil, err
	}
	tls, err := mtls.Load(l.Config.TLSDir("gateway"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	w := &epochWatch{etcd: client, last: make(map[sight]uint64)}
	for _, m := range l.Schedulers {
		conn, err := grpc.NewClient("passthrough:///"+l.WireAddr(m), grpc.WithTransportCredentials(tls.ClientCredentials(lab.Domain.Scheduler())))
		if err != nil {
			return nil, err
		}
		go w.ask(context.WithoutCancel(ctx), m, controlwire.NewSchedulerClient(conn))
	}
	return w, nil
}

// slotWatch watches the slots in etcd.
type slotWatch struct {
	stop context.CancelFunc
	// moves is how often etcd was seen to give a slot an owner, and heard the revision up to which all was seen.
	moves, heard atomic.Int64
}

// heardKey is beside the keys of Windlass, and watched with them.
const heardKey = lab.Prefix + "-lab"

// follow watches slots from now on. A watch that has seen more than there is, since etcd has lost its memory, sees nothing
// until there is as much again; so each row has its own.
func (w *epochWatch) follow(ctx context.Context) error {
	if w.watch != nil {
		w.watch.stop()
	}
	got, err := w.etcd.Get(ctx, heardKey)
	if err != nil {
		return fmt.Errorf("watching slots: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.watch = &slotWatch{stop: stop}
	go w.listen(watching, w.watch, got.Header.Revision+1)
	return nil
}

// listen notes all that etcd says from a revision on. A watch that etcd ends begins again.
func (w *epochWatch) listen(ctx context.Context, watch *slotWatch, from int64) {
	for ctx.Err() == nil {
		for answer := range w.etcd.Watch(ctx, lab.Prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
			for _, e := range answer.Events {
				w.note(watch, e)
			}
			from = max(from, answer.CompactRevision, answer.Header.Revision+1)
		}
		sleep.For(ctx, askEvery)
	}
}

// note notes one change in etcd.
func (w *epochWatch) note(watch *slotWatch, e *clientv3.Event) {
	number, isSlot := strings.CutPrefix(string(e.Kv.Key), lab.Prefix+"/slots/")
	slot, err := strconv.Atoi(number)
	if isSlot && err == nil && e.Type == clientv3.EventTypePut {
		watch.moves.Add(1)
		w.observe("etcd", slot, uint64(e.Kv.ModRevision))
	}
	watch.heard.Store(e.Kv.ModRevision)
}

// seenWithin is how long the watch may take to see what the row itself writes.
const seenWithin = 10 * time.Second

// moves is how often slots were given an owner in this row. It is an error if the watch does not see what is written.
func (w *epochWatch) moves(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	put, err := w.etcd.Put(ctx, heardKey, "")
	if err != nil {
		return 0, err
	}
	err = sleep.Until(ctx, 10*time.Millisecond, func() (bool, error) { return w.watch.heard.Load() >= put.Header.Revision, nil })
	if err != nil {
		return 0, fmt.Errorf("the watch of slots does not see what is written: %w", err)
	}
	return int(w.watch.moves.Load()), nil
}

// ask asks a scheduler again and again which owners it knows. Each process is an
// observer of its own: one that was restarted may have to learn.
func (w *epochWatch) ask(ctx context.Context, m *lab.Member, scheduler controlwire.SchedulerClient) {
	for {
		pid := m.Process().PID
		asking, cancel := context.WithTimeout(ctx, askEvery)
		answer, err := scheduler.Slots(asking, &controlwire.SlotsRequest{})
		cancel()
		// An answer of which it is not known whose it is says nothing.
		if err == nil && m.Process().PID == pid {
			for _, s := range answer.GetSlots() {
				w.observe(fmt.Sprintf("%s (pid %d)", m.Name, pid), int(s.GetSlot()), s.GetOwner().GetEpoch())
			}
		}
		sleep.For(ctx, askEvery)
	}
}

// observe notes what somebody sees, unless that is what they saw before.
func (w *epochWatch) observe(observer string, slot int, epoch uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := sight{observer, slot}
	if last, known := w.last[at]; known && last == epoch {
		return
	}
	w.last[at] = epoch
	w.seen = append(w.seen, verdict.Epoch{Observer: observer, Slot: slot, Epoch: epoch, At: now()})
}

// finding says whether an epoch fell since it was asked last. They may where etcd
// has lost its memory.
func (w *epochWatch) finding(may bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	illegal := verdict.IllegalEpochs(w.seen)
	w.seen = nil
	if illegal > 0 && !may {
		return []string{fmt.Sprintf("epochs: %d slots went back to an earlier one", illegal)}
	}
	return nil
}
