package page

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/webguard"
)

const (
	// freshFor is how long a View is shown to others who ask.
	freshFor = 900 * time.Millisecond
	// forgetAfter is when nobody has looked for so long that what was seen before
	// says nothing about the present.
	forgetAfter = time.Minute
	// maxFunctions is how many functions the page shows: those with the
	// most waiting calls, and of others those with the most calls.
	maxFunctions = 1000
)

//go:embed assets
var assets embed.FS

// Source reads the present state.
type Source interface {
	Sample(ctx context.Context) (monitor.Sample, error)
}

// Config is what the page says beside the View.
type Config struct {
	// Version is that of Windlass, and GatewayURL where functions are called.
	Version    string `json:"version"`
	GatewayURL string `json:"gatewayURL"`
}

// Status is the content of /status.json.
type Status struct {
	Config
	monitor.View
	// More is how many functions are left out, since they are too many.
	More int `json:"more,omitempty"`
}

// Page is the page. It is an http.Handler.
type Page struct {
	config Config
	source Source
	now    func() time.Time
	mux    *http.ServeMux

	mu      sync.Mutex
	watcher monitor.Watcher
	view    monitor.View
}

// New makes the page.
func New(config Config, source Source, now func() time.Time) *Page {
	p := &Page{config: config, source: source, now: now, mux: http.NewServeMux()}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // The folder is part of the program.
	}
	static := http.FileServerFS(files)
	for _, path := range Paths() {
		if path != statusPath {
			p.mux.Handle("GET "+path, static)
		}
	}
	p.mux.HandleFunc("GET "+statusPath, p.status)
	return p
}

const statusPath = "/status.json"

// Paths are the paths that the page serves, as patterns of http.ServeMux.
func Paths() []string { return []string{"/{$}", "/page.css", "/page.js", "/icon.svg", statusPath} }

// policy lets the browser run and load what the page itself has, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !webguard.NamesThisMachine(r.Host) {
		http.Error(w, "the status page answers to localhost and to loopback addresses only", http.StatusForbidden)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

func (p *Page) status(w http.ResponseWriter, r *http.Request) {
	if why := (webguard.Guard{}).Refuses(r); why != "" {
		http.Error(w, "pages of others may not read the status: "+why, http.StatusForbidden)
		return
	}
	view, err := p.currentView(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s := Status{Config: p.config, View: view}
	if more := len(view.Functions) - maxFunctions; more > 0 {
		// The others who look at the same View do not wait for this one.
		s.Functions, s.More = slices.Clone(view.Functions), more
		monitor.Sort(s.Functions, monitor.ByQueue, false)
		s.Functions = s.Functions[:maxFunctions]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s)
}

// currentView is the latest View, or a new one if that is too old.
func (p *Page) currentView(ctx context.Context) (monitor.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := p.now().Sub(p.view.At)
	if age < freshFor {
		return p.view, nil
	}
	sample, err := p.source.Sample(ctx)
	if err != nil {
		return monitor.View{}, err
	}
	if age > forgetAfter {
		p.watcher = monitor.Watcher{}
	}
	p.view = p.watcher.See(sample)
	return p.view, nil
}
