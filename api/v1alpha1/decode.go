package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	kubejson "sigs.k8s.io/json"
)

// Decode reads the Functions of a manifest: YAML or JSON, in one document or
// several. A document may be a list of Functions. Decode is strict, and it reports the
// problems of all documents together: each line of its error names the source (such as
// the file's name), the line there, the field and the remedy. Empty documents are
// skipped; a manifest without any Function is an error.
//
// Decode knows the shape of a Function only. What it returns has no defaults
// and may not be valid: see Default and Validate.
//
// An error is of the file and the line of a field.
func Decode(data []byte, source string) ([]*Function, error) {
	located, err := DecodeLocated(data, source)
	functions := make([]*Function, 0, len(located))
	for _, l := range located {
		functions = append(functions, l.Function)
	}
	return functions, err
}

// Located is a Function and where its fields are.
//
// +kubebuilder:object:generate=false
type Located struct {
	*Function
	Lines Lines
}

// DecodeLocated is Decode for those who say in which line something is wrong.
func DecodeLocated(data []byte, source string) ([]Located, error) {
	functions, err := decodeDocuments(splitDocuments(data), source)
	if err == nil && len(functions) == 0 {
		return nil, isEmpty(source)
	}
	return functions, err
}

// DecodeAmongOthers is DecodeLocated for a file that was found in a folder: it skips documents that
// are about something else, such as a PodDisruptionBudget for a function, and returns none if that
// leaves none.
func DecodeAmongOthers(data []byte, source string) ([]Located, error) {
	return decodeDocuments(slices.DeleteFunc(splitDocuments(data), document.isForeign), source)
}

func decodeDocuments(docs []document, source string) ([]Located, error) {
	var functions []Located
	var problems []error
	for _, doc := range docs {
		decoded, found := decodeDocument(doc)
		for _, p := range found {
			problems = append(problems, fmt.Errorf("%s:%d: %s", source, p.line, p.text))
		}
		functions = append(functions, decoded...)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return functions, nil
}

var kindFunction = regexp.MustCompile(`\bkind["']?\s*:\s*["']?` + KindFunction + `\b`)

// isForeign tells whether a document is about something else than Functions. One with a slip in its
// header is not.
func (d document) isForeign() bool {
	// The files that tools write can be large, and slow to parse.
	if !bytes.Contains(d.text, []byte(GroupName+"/")) && !kindFunction.Match(d.text) {
		return true
	}
	content, problems := d.parse()
	if len(problems) > 0 {
		return !manifestOfOurs.Match(d.text) && !kindFunction.Match(d.text)
	}
	fields, _ := content.(map[string]any)
	if fields["kind"] == "List" && isList(fields) {
		items, _ := fields["items"].([]any)
		return !slices.ContainsFunc(items, func(item any) bool {
			of, _ := item.(map[string]any)
			return meansFunction(of)
		})
	}
	return !meansFunction(fields)
}

// meansFunction tells by its header whether an object is a Function, or was meant to be one.
func meansFunction(fields map[string]any) bool {
	switch fields["kind"] {
	case KindFunction:
		return true
	case KindClusterRuntime, KindFunctionRevision:
		return false
	}
	version, _ := fields["apiVersion"].(string)
	return strings.HasPrefix(version, GroupName+"/")
}

func isEmpty(source string) error {
	return fmt.Errorf("%s: is empty; a manifest begins with apiVersion: %s and kind: %s", source, APIVersion, KindFunction)
}

// DecodeHistory reads what EncodeHistory wrote: a Function and its revisions. It is no
// less strict than Decode. It does not say whether the revisions are of the Function.
func DecodeHistory(data []byte, source string) (*Function, []*FunctionRevision, error) {
	var functions []Located
	var revisions []*FunctionRevision
	var problems []error
	for _, doc := range splitDocuments(data) {
		revision, is, found := decodeRevision(doc)
		var decoded []Located
		if !is {
			decoded, found = decodeDocument(doc)
		}
		for _, p := range found {
			problems = append(problems, fmt.Errorf("%s:%d: %s", source, p.line, p.text))
		}
		functions = append(functions, decoded...)
		if revision != nil {
			revisions = append(revisions, revision)
		}
	}
	switch {
	case len(problems) > 0:
		return nil, nil, errors.Join(problems...)
	case len(functions) == 0:
		return nil, nil, isEmpty(source)
	case len(functions) > 1:
		return nil, nil, fmt.Errorf("%s: holds %d functions, not one", source, len(functions))
	}
	return functions[0].Function, revisions, nil
}

// decodeRevision returns the FunctionRevision of a document, if it is one.
func decodeRevision(doc document) (r *FunctionRevision, is bool, problems []problem) {
	content, problems := doc.parse()
	fields, _ := content.(map[string]any)
	if len(problems) > 0 || fields["kind"] != KindFunctionRevision || fields["apiVersion"] != APIVersion {
		return nil, false, nil
	}
	var s shape
	checked := s.object("", fields, revisionType)
	if len(s.problems) > 0 {
		return nil, true, located(linesOf(doc), s.problems...)
	}
	r = &FunctionRevision{}
	if err := assemble(checked, r); err != nil {
		return nil, true, located(linesOf(doc), "is not a FunctionRevision: "+err.Error())
	}
	return r, true, nil
}

// decodeDocument returns the Function of a document or those of a list, or problems,
// or nothing if the document is empty.
func decodeDocument(doc document) ([]Located, []problem) {
	content, problems := doc.parse()
	if len(problems) > 0 || content == nil {
		return nil, problems
	}
	lines := linesOf(doc)
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, located(lines, describe(content)+" is not a Function; a document has the fields apiVersion, kind, metadata and spec")
	}
	if !isList(fields) {
		return decodeLocated(fields, lines)
	}
	items, ok := fields["items"].([]any)
	if !ok {
		return nil, located(lines, "items: a list of Functions belongs there; write - and a Function for each")
	}
	var functions []Located
	for i, item := range items {
		name, lines := fmt.Sprintf("items[%d]", i), lines.item(i)
		of, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, problem{lines.Of(""), fmt.Sprintf("%s: %s is not a Function", name, describe(item))})
			continue
		}
		// An item of a list may leave out what the list says.
		if _, given := of["kind"]; !given && fields["kind"] == listKind {
			of["apiVersion"], of["kind"] = APIVersion, KindFunction
		}
		decoded, found := decodeLocated(of, lines)
		for _, p := range found {
			problems = append(problems, problem{p.line, name + "." + p.text})
		}
		functions = append(functions, decoded...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return functions, nil
}

func decodeLocated(fields map[string]any, lines Lines) ([]Located, []problem) {
	f, problems := decodeFunction(fields)
	if f == nil {
		return nil, located(lines, problems...)
	}
	return []Located{{f, lines}}, nil
}

// located finds the lines of problems, whose texts begin with their fields.
func located(lines Lines, problems ...string) []problem {
	var found []problem
	for _, text := range problems {
		path, _, _ := strings.Cut(text, ": ")
		found = append(found, problem{lines.Of(path), text})
	}
	return found
}

// listKind is what the API server calls many Functions.
const listKind = KindFunction + "List"

// isList tells whether a document is what list -o yaml or kubectl get -o yaml print.
func isList(fields map[string]any) bool {
	return fields["kind"] == listKind && fields["apiVersion"] == APIVersion ||
		fields["kind"] == "List" && fields["apiVersion"] == "v1"
}

func decodeFunction(fields map[string]any) (*Function, []string) {
	if problems, foreign := checkHeader(fields); foreign {
		return nil, problems
	}
	checked, problems := checkFunction(fields)
	if len(problems) > 0 {
		return nil, problems
	}
	f := &Function{}
	if err := assemble(checked, f); err != nil {
		return nil, []string{"is not a Function: " + err.Error()}
	}
	return f, nil
}

// checkHeader says whether the document is of another kind, so that there is no
// sense in comparing it with a Function.
func checkHeader(fields map[string]any) (problems []string, foreign bool) {
	if v, ok := fields["apiVersion"].(string); ok && v != APIVersion {
		problems = append(problems, fmt.Sprintf("apiVersion: %s is not known here; write %s", describe(v), APIVersion))
	}
	if k, ok := fields["kind"].(string); ok && k != KindFunction {
		problems = append(problems, fmt.Sprintf("kind: %s is not known here; write %s", describe(k), KindFunction))
	}
	return problems, len(problems) > 0
}

// assemble reads fields of the right types into an object.
func assemble(fields, object any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return kubejson.UnmarshalCaseSensitivePreserveInts(text, object)
}

var manifestOfOurs = regexp.MustCompile(`(?m)^[\s{,]*["']?apiVersion["']?\s*:\s*["']?` + regexp.QuoteMeta(GroupName) + `/`)

// MayBeManifest tells whether a file of that name can be a manifest.
func MayBeManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// IsManifest tells whether a file beside a function's code describes a function. If that
// were code, a change of its scaling would make a revision.
func IsManifest(name string, content []byte) bool {
	return MayBeManifest(name) && manifestOfOurs.Match(content)
}

// IsLeftOut tells whether a file or folder of that name below a function's code or manifests is
// neither: hidden ones, and what tools write beside code. What a folder is called that
// code.path names does not matter.
func IsLeftOut(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == NodeModules ||
		strings.HasSuffix(name, ".pyc") || strings.HasSuffix(name, "~")
}

// NodeModules is the folder of the packages that npm installs.
const NodeModules = "node_modules"
