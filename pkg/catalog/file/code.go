package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// maxCodeFiles bounds how many files are compared, and in how many folders they are looked for.
// Changes of further ones stay unnoticed: those deepest below code.path.
const maxCodeFiles = 10_000

// checkCode says that a function's code is not where the function says.
func checkCode(f *v1alpha1.Function) field.ErrorList {
	if f.Spec.Template.Code == nil || f.Spec.Template.Code.Path == "" {
		return nil
	}
	if _, err := os.Stat(f.Spec.Template.Code.Path); err != nil {
		at := field.NewPath("spec", "template", "code", "path")
		return field.ErrorList{field.Invalid(at, f.Spec.Template.Code.Path, "cannot be read: name a file or a folder that is there")}
	}
	return nil
}

// codeIsGone reports whether nothing is where code should be. What only cannot be read may be
// readable later.
func codeIsGone(code *v1alpha1.Code) bool {
	if code == nil || code.Path == "" {
		return false
	}
	_, err := os.Stat(code.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// codeStamp is a digest of the names, sizes and times of a function's files: those at
// code.path, and the program that command names by a path. It is empty if the function has no
// such files.
func codeStamp(spec v1alpha1.FunctionSpec) string {
	digest := sha256.New()
	seen := 0
	add := func(path string, info fs.FileInfo) {
		seen++
		fmt.Fprintf(digest, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	if root := codeRoot(spec); root != "" {
		for _, f := range codeFiles(root, maxCodeFiles) {
			add(f.path, f.info)
		}
	}
	if len(spec.Template.Command) > 0 && strings.Contains(spec.Template.Command[0], "/") {
		program := spec.Template.Command[0]
		if !filepath.IsAbs(program) && spec.Template.Code != nil {
			program = filepath.Join(spec.Template.Code.Path, program)
		}
		if info, err := os.Stat(program); err == nil {
			add(program, info)
		}
	}
	if seen == 0 {
		return ""
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// codeFile is a file of a function's code.
type codeFile struct {
	path string
	info fs.FileInfo
}

// codeFiles are the file root, or the files below it, in the order of WalkDir. Of more than most
// they are those next to root: a home folder has more files in its caches than are compared. What
// cannot be read is for the instance to complain about.
func codeFiles(root string, most int) []codeFile {
	var files []codeFile
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !isManifest(path, info) {
			files = append(files, codeFile{path, info})
		}
	}
	add(root)
	folders := []string{root}
	for n := 0; n < len(folders) && len(files) < most; n++ {
		if IsDataFolder(folders[n]) {
			continue
		}
		entries, _ := os.ReadDir(folders[n])
		for _, entry := range entries {
			path := filepath.Join(folders[n], entry.Name())
			switch {
			case v1alpha1.IsLeftOut(entry.Name()):
			case entry.IsDir() && len(folders) < most:
				folders = append(folders, path)
			case (entry.Type().IsRegular() || entry.Type() == fs.ModeSymlink) && len(files) < most:
				add(path)
			}
		}
	}
	slices.SortFunc(files, func(a, b codeFile) int {
		return slices.Compare(strings.Split(a.path, "/"), strings.Split(b.path, "/"))
	})
	return files
}

// maxManifest is the size in bytes up to which a file beside the code is looked into.
const maxManifest = 1 << 20

// isManifest reports whether a file beside the code is a manifest, which is no code.
func isManifest(path string, info fs.FileInfo) bool {
	if !v1alpha1.MayBeManifest(path) || info.Size() > maxManifest {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && v1alpha1.IsManifest(path, content)
}

// codeRoot is what code.path names, behind any links; empty if that is nothing.
func codeRoot(spec v1alpha1.FunctionSpec) string {
	if spec.Template.Code == nil || spec.Template.Code.Path == "" {
		return ""
	}
	root, err := filepath.EvalSymlinks(spec.Template.Code.Path)
	if err != nil {
		return ""
	}
	return root
}

// stampCode records the present state of the function's code.
func stampCode(f *v1alpha1.Function) {
	// A manifest that was read from here may have the stamp of other code.
	delete(f.Annotations, v1alpha1.AnnotationCodeStamp)
	stamp := codeStamp(f.Spec)
	if stamp == "" {
		return
	}
	if f.Annotations == nil {
		f.Annotations = make(map[string]string)
	}
	f.Annotations[v1alpha1.AnnotationCodeStamp] = stamp
}
