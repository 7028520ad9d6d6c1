package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patch is one mutant: what it breaks, and which lines of the product it changes.
type patch struct {
	name string
	// breaks is what the mutant breaks, in a sentence, and rules are those of the simulator that may notice it.
	breaks string
	rules  []string
	hunks  []hunk
}

// hunk changes one place of one file: lines that must be there, once, and what they are
// replaced with.
type hunk struct {
	file     string
	old, new string
}

// readPatches reads all patches of a folder, in the order of their names.
func readPatches(dir string) ([]patch, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.diff"))
	if err != nil {
		return nil, err
	}
	patches := make([]patch, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		p, err := parsePatch(strings.TrimSuffix(filepath.Base(path), ".diff"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		patches = append(patches, p)
	}
	return patches, nil
}

// parsePatch reads a patch: lines with # say what it breaks, lines with = which rules of the
// simulator may notice it, a line with a path begins a hunk of that file, and lines with -, + and a space are what it takes away,
// adds and leaves. There are no line numbers, so that a patch lives as long as its lines.
func parsePatch(name, text string) (patch, error) {
	p := patch{name: name}
	var breaks []string
	for number, line := range strings.Split(text, "\n") {
		switch {
		case line == "":
		case line[0] == '#':
			breaks = append(breaks, strings.TrimSpace(line[1:]))
		case line[0] == '=':
			p.rules = append(p.rules, strings.TrimSpace(line[1:]))
		case !strings.ContainsRune("-+ ", rune(line[0])):
			p.hunks = append(p.hunks, hunk{file: line})
		case len(p.hunks) == 0:
			return p, fmt.Errorf("line %d: a change must follow the path of its file", number+1)
		default:
			p.hunks[len(p.hunks)-1].add(line[0], line[1:]+"\n")
		}
	}
	p.breaks = strings.Join(breaks, " ")
	return p, p.validate()
}

func (h *hunk) add(kind byte, line string) {
	if kind != '+' {
		h.old += line
	}
	if kind != '-' {
		h.new += line
	}
}

func (p *patch) validate() error {
	switch {
	case p.breaks == "":
		return errors.New("a first line with # must say what the mutant breaks")
	case len(p.rules) == 0:
		return errors.New("a line with = must name a rule that may notice it")
	case len(p.hunks) == 0:
		return errors.New("nothing is changed")
	}
	for _, h := range p.hunks {
		switch {
		case h.old == "" || h.old == h.new:
			return fmt.Errorf("a hunk of %s changes no line", h.file)
		case !strings.HasPrefix(h.file, "pkg/") || strings.HasSuffix(h.file, "_test.go"):
			return fmt.Errorf("%s is no file of the product", h.file)
		}
	}
	return nil
}

// apply returns the files that the mutant changes, as it has them. The product's own are
// below root.
func (p *patch) apply(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, h := range p.hunks {
		text, changed := files[h.file]
		if !changed {
			read, err := os.ReadFile(filepath.Join(root, h.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", p.name, err)
			}
			text = string(read)
		}
		if n := countLines(text, h.old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s has %d times, and must have once, the lines\n%s"+
				"write the patch again, or remove it if the product has nothing like that any more", p.name, h.file, n, h.old)
		}
		files[h.file] = strings.Replace("\n"+text, "\n"+h.old, "\n"+h.new, 1)[1:]
	}
	return files, nil
}

// countLines is how often a text has some whole lines.
func countLines(text, lines string) int {
	n := 0
	for rest := "\n" + text; ; n++ {
		at := strings.Index(rest, "\n"+lines)
		if at < 0 {
			return n
		}
		rest = rest[at+1:]
	}
}
