package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/test/faults/lab"
	"github.com/windlass-dev/windlass/test/faults/load"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// epochWatch notes every owner that etcd has named.
type epochWatch struct {
	mu   sync.Mutex
	seen []verdict.Epoch
}

// watchEpochs begins to watch.
func watchEpochs(ctx context.Context, l *lab.Lab) (*epochWatch, error) {
	client, err := l.EtcdClient()
	if err != nil {
		return nil, err
	}
	w := &epochWatch{}
	go func() {
		defer client.Close()
		for answer := range client.Watch(context.WithoutCancel(ctx), lab.Prefix+"/slots/", clientv3.WithPrefix()) {
			w.note("etcd", answer.Events)
		}
	}()
	return w, nil
}

func (w *epochWatch) note(observer string, events []*clientv3.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		key := string(e.Kv.Key)
		slot, err := strconv.Atoi(key[strings.LastIndexByte(key, '/')+1:])
		if err == nil && e.Type == clientv3.EventTypePut {
			w.seen = append(w.seen, verdict.Epoch{Observer: observer, Slot: slot, Epoch: uint64(e.Kv.ModRevision), At: load.Now()})
		}
	}
}

// verdict says whether an epoch fell since it was asked last. They may where etcd
// has lost its memory.
func (w *epochWatch) verdict(may bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	illegal := verdict.IllegalEpochs(w.seen)
	w.seen = nil
	if illegal > 0 && !may {
		return []string{fmt.Sprintf("epochs: %d slots went back to an earlier one", illegal)}
	}
	return nil
}
