package controller

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wirePort is the name of the port of the schedulers' Service.
const wirePort = "wire"

// endpoints finds the schedulers by the EndpointSlices of their Service.
type endpoints struct {
	cache     cache.Cache
	namespace string
	service   string

	mu        sync.Mutex
	listening bool
	changed   chan struct{}
}

var _ Schedulers = (*endpoints)(nil)

func newEndpoints(c cache.Cache, namespace, service string) *endpoints {
	return &endpoints{cache: c, namespace: namespace, service: service, changed: make(chan struct{})}
}

// Addresses returns the addresses of the schedulers that serve.
func (e *endpoints) Addresses(ctx context.Context) ([]string, <-chan struct{}, error) {
	if err := e.listen(ctx); err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	changed := e.changed
	e.mu.Unlock()
	var list discoveryv1.EndpointSliceList
	err := e.cache.List(ctx, &list, client.InNamespace(e.namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: e.service})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the EndpointSlices of Service %s/%s: %w", e.namespace, e.service, err)
	}
	return addressesOf(list.Items), changed, nil
}

// listen makes changes known, from the first call that succeeds.
func (e *endpoints) listen(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listening {
		return nil
	}
	informer, err := e.cache.GetInformer(ctx, &discoveryv1.EndpointSlice{})
	if err != nil {
		return fmt.Errorf("cannot watch EndpointSlices: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.notify() },
		UpdateFunc: func(any, any) { e.notify() },
		DeleteFunc: func(any) { e.notify() },
	})
	e.listening = err == nil
	return err
}

func (e *endpoints) notify() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}

// addressesOf are the addresses of serving endpoints, including those that shut down, each
// once and in order.
func addressesOf(found []discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, slice := range found {
		port, ok := portOf(slice.Ports)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if serving := endpoint.Conditions.Serving; serving != nil && !*serving {
				continue
			}
			for _, address := range endpoint.Addresses {
				addresses = append(addresses, net.JoinHostPort(address, strconv.Itoa(int(port))))
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// portOf is the port named wire, or else the only one.
func portOf(ports []discoveryv1.EndpointPort) (int32, bool) {
	for _, p := range ports {
		if p.Port != nil && (p.Name != nil && *p.Name == wirePort || len(ports) == 1) {
			return *p.Port, true
		}
	}
	return 0, false
}
