package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// maxName is how long a pod's name may be so that it is its host name as well.
const maxName = 63

// MaxCID is how many bytes a CID may have, so that a name has room for it, for a hash, and
// for a letter of the function. Those of a Term are shorter.
const MaxCID = maxName - len("f-123456-")

// Name is the name of an instance's pod: the function's name and the CID. A name
// that is too long is cut, and a hash of the function's UID keeps it apart from
// others that begin alike. The CID has at most MaxCID bytes.
func Name(function, functionUID string, cid invocation.CID) string {
	suffix := "-" + strings.ToLower(string(cid))
	if len(function)+len(suffix) <= maxName {
		return function + suffix
	}
	sum := sha256.Sum256([]byte(functionUID))
	suffix = "-" + hex.EncodeToString(sum[:3]) + suffix
	return strings.TrimRight(function[:maxName-len(suffix)], "-") + suffix
}

// codeFile is the file, below TaskRoot, that a handler's module is in.
func codeFile(handler, extension string) string {
	return module(handler, extension) + "." + extension
}

// module is the path of the module that a handler names. In Python the last dot
// ends it, and dots before are folders; elsewhere the first dot behind the
// folders ends it, and dots behind it are objects of the module.
func module(handler, extension string) string {
	if extension == "py" {
		if dot := strings.LastIndexByte(handler, '.'); dot >= 0 {
			handler = handler[:dot]
		}
		return strings.ReplaceAll(handler, ".", "/")
	}
	base := strings.LastIndexByte(handler, '/') + 1
	name, _, _ := strings.Cut(handler[base:], ".")
	return handler[:base] + name
}

func inlineCode(f *v1alpha1.Function) string {
	if f.Spec.Template.Code == nil {
		return ""
	}
	return f.Spec.Template.Code.Inline
}

// functionPort is where the agent and the function meet.
func functionPort(f *v1alpha1.Function) int32 {
	if f.Spec.Template.Port != 0 {
		return f.Spec.Template.Port
	}
	return DefaultPort
}
