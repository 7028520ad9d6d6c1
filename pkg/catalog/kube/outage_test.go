package kube

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failingInformers are informers of an API server that answers errors before it answers.
type failingInformers struct {
	cache.Informers
	errs []error
}

func (a *failingInformers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if len(a.errs) > 0 {
		err := a.errs[0]
		a.errs = a.errs[1:]
		return nil, err
	}
	return emptyInformer{}, nil
}

// emptyInformer knows of nothing and has told all of it.
type emptyInformer struct{ cache.Informer }

func (emptyInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return syncedRegistration{}, nil
}

type syncedRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (syncedRegistration) HasSynced() bool { return true }

func TestM9ASourceThatBeginsWhileTheAPIIsAwayWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("dial tcp: connection refused")
		s := New(Config{}, Deps{Informers: &failingInformers{errs: []error{refused, refused, refused}}, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(2 * retryInterval)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it gave up: %v", err)
		case <-s.Synced():
			t.Fatal("it has synced with an API server that is away")
		default:
		}
		time.Sleep(2 * retryInterval)
		<-s.Synced()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestM9ASourceThatIsEndedWhileTheAPIIsAwayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{}, Deps{Informers: &failingInformers{errs: []error{errors.New("refused"), errors.New("refused")}}, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), retryInterval/2)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestM9AKindThatTheClusterDoesNotKnowIsSaid(t *testing.T) {
	s := New(Config{}, Deps{
		Informers: &failingInformers{errs: []error{&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Function"}}}},
		Log:       slog.New(slog.DiscardHandler),
	})
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Function") {
		t.Errorf("got %v, want that there is no such kind", err)
	}
}
