package terminal

import (
	"charm.land/bubbles/v2/key"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// keyMap is what keys do. It is for the help, too.
type keyMap struct {
	up, down, pageUp, pageDown, top, bottom key.Binding

	sort   map[monitor.Order]key.Binding
	filter key.Binding
	open   key.Binding
	back   key.Binding
	nodes  key.Binding
	pause  key.Binding
	help   key.Binding
	quit   key.Binding
}

func bind(help, what string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, what))
}

func keys() keyMap {
	return keyMap{
		up: bind("↑ k", "up", "up", "k"), down: bind("↓ j", "down", "down", "j"),
		pageUp: bind("pgup", "a screen up", "pgup", "ctrl+u"), pageDown: bind("pgdn", "a screen down", "pgdown", "ctrl+d"),
		top: bind("g", "to the top", "g", "home"), bottom: bind("G", "to the bottom", "G", "end"),
		sort: map[monitor.Order]key.Binding{
			monitor.ByQueue:     bind("w", "by waiting calls", "w"),
			monitor.ByRate:      bind("r", "by rate", "r"),
			monitor.ByErrors:    bind("e", "by errors", "e"),
			monitor.ByP99:       bind("l", "by latency (p99)", "l"),
			monitor.ByInstances: bind("i", "by instances", "i"),
			monitor.ByName:      bind("n", "by name", "n"),
		},
		filter: bind("/", "filter", "/"),
		open:   bind("enter", "details", "enter", "right"),
		back:   bind("esc", "back", "esc", "left", "backspace"),
		nodes:  bind("tab", "nodes", "tab", "shift+tab"),
		pause:  bind("space", "pause", "space", "p"),
		help:   bind("?", "help", "?"),
		quit:   bind("q", "quit", "q", "ctrl+c"),
	}
}

// short is the line at the bottom, and full what help shows.
func (k keyMap) short(at screen) []key.Binding {
	switch at {
	case oneFunction:
		return []key.Binding{k.back, k.up, k.down, k.pause, k.quit}
	case allNodes:
		return []key.Binding{bind("tab", "functions", "tab"), k.pause, k.help, k.quit}
	}
	return []key.Binding{k.open, k.filter, bind("w r e l i n", "sort", "w"), k.nodes, k.help, k.quit}
}

func (k keyMap) full() [][]key.Binding {
	var sorting []key.Binding
	for _, by := range monitor.Orders() {
		sorting = append(sorting, k.sort[by])
	}
	return [][]key.Binding{
		{k.up, k.down, k.pageUp, k.pageDown, k.top, k.bottom},
		append(sorting, bind("again", "turn around", "w")),
		{k.open, k.back, k.filter, k.nodes, k.pause, k.help, k.quit},
	}
}
