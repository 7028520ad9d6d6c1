package v1alpha1

import (
	"iter"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Lines knows in which lines of a manifest the fields of a Function are. Its zero value
// knows none, as of a Function that was not read from a manifest.
//
// +kubebuilder:object:generate=false
type Lines struct {
	// root is read only if something is wrong.
	root func() *yaml.Node
	// before is how many lines of the manifest come before root's document.
	before int
}

// linesOf finds the fields of a document. What cannot be read has none.
func linesOf(doc document) Lines {
	return Lines{before: doc.line, root: sync.OnceValue(func() *yaml.Node {
		var root yaml.Node
		if yaml.Unmarshal(doc.text, &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})}
}

// item are the lines of one of the Functions of a list.
func (l Lines) item(i int) Lines {
	return Lines{before: l.before, root: func() *yaml.Node {
		items, _ := step(l.root(), "items")
		found, _ := step(items, strconv.Itoa(i))
		return found
	}}
}

// Of is the line of a field, such as spec.template.env[2].name, or of the last part of its path
// that is there, as of a field that is missing; 0 if nothing is known.
func (l Lines) Of(path string) int {
	if l.root == nil {
		return 0
	}
	node := l.root()
	if node == nil {
		return l.before + 1
	}
	line := node.Line
	for name := range fieldNames(path) {
		next, key := step(node, name)
		if next == nil {
			break
		}
		node, line = next, key.Line
	}
	return l.before + line
}

// step is the value of a field or an item of node, and what names its place.
func step(node *yaml.Node, name string) (value, key *yaml.Node) {
	if node == nil {
		return nil, nil
	}
	switch node.Kind {
	case yaml.AliasNode:
		return step(node.Alias, name)
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1], node.Content[i]
			}
		}
	}
	return nil, nil
}

// fieldNames yields the parts of a path. What is in brackets is an index or a key.
func fieldNames(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" {
			var name string
			if rest, inBrackets := strings.CutPrefix(path, "["); inBrackets {
				name, path, _ = strings.Cut(rest, "]")
			} else {
				end := strings.IndexAny(path, ".[")
				if end < 0 {
					end = len(path)
				}
				name, path = path[:end], path[end:]
			}
			path = strings.TrimPrefix(path, ".")
			if !yield(name) {
				return
			}
		}
	}
}
