package peers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
)

// Routes are the URLs of each function's processes, by the path that leads to them.
type Routes map[string][]string

// newBalancer is a proxy for each process, and sends a call to the first of its function's
// processes that run the fewest calls.
func newBalancer(routes string) (http.Handler, error) {
	var parsed Routes
	if err := json.Unmarshal([]byte(routes), &parsed); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, urls := range parsed {
		all := new(places)
		for _, u := range urls {
			target, err := url.Parse(u)
			if err != nil {
				return nil, err
			}
			all.places = append(all.places, &place{proxy: newProxy(target, false)})
		}
		mux.Handle(path, all)
	}
	return mux, nil
}

// places are the processes of a function.
type places struct {
	mu     sync.Mutex // guards everything below
	places []*place
}

// place is one process: its proxy, and the calls that run there.
type place struct {
	proxy   http.Handler
	running int
}

// ServeHTTP implements http.Handler.
func (p *places) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := p.takePlace()
	defer p.freePlace(at)
	at.proxy.ServeHTTP(w, r)
}

func (p *places) takePlace() *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.places[0]
	for _, other := range p.places {
		if other.running < first.running {
			first = other
		}
	}
	first.running++
	return first
}

func (p *places) freePlace(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.running--
}
