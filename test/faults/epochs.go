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
	// moves is how often etcd was seen to give a slot an owner.
	moves atomic.Int64

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

// watchEpochs begins to watch, and goes on until the process ends.
func watchEpochs(ctx context.Context, l *lab.Lab) (*epochWatch, error) {
	client, err := l.Etcd.Client()
	if err != nil {
		return nil, err
	}
	tls, err := mtls.Load(l.Config.TLSDir("gateway"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	w := &epochWatch{last: make(map[sight]uint64)}
	watching := context.WithoutCancel(ctx)
	go func() {
		defer client.Close()
		for answer := range client.Watch(watching, lab.Prefix+"/slots/", clientv3.WithPrefix()) {
			for _, e := range answer.Events {
				key := string(e.Kv.Key)
				slot, err := strconv.Atoi(key[strings.LastIndexByte(key, '/')+1:])
				if err == nil && e.Type == clientv3.EventTypePut {
					w.moves.Add(1)
					w.observe("etcd", slot, uint64(e.Kv.ModRevision))
				}
			}
		}
	}()
	for _, m := range l.Schedulers {
		conn, err := grpc.NewClient("passthrough:///"+l.WireAddr(m), grpc.WithTransportCredentials(tls.ClientCredentials(lab.Domain.Scheduler())))
		if err != nil {
			return nil, err
		}
		go w.ask(watching, m, controlwire.NewSchedulerClient(conn))
	}
	return w, nil
}

// ask asks a scheduler again and again which owners it knows. Each process is an
// observer of its own: one that was started anew may have to learn.
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
