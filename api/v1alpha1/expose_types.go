package v1alpha1

// Expose says where a function can be called, besides where all functions can.
type Expose struct {
	// hosts are DNS names of the function's own, such as shop.example.com: calls to all
	// of their paths go to the function. The administrator of the cluster decides which
	// hosts a namespace may have. If two functions ask for the same host, the older
	// function gets it. Names in other alphabets are written with xn--.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []Hostname `json:"hosts,omitempty"`
}

// Hostname is a DNS name of two labels or more.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a DNS name of two labels or more, each of at most 63 lower-case letters, digits and hyphens, 253 bytes in all, and no URL, port, * or IP address; write for example shop.example.com"
type Hostname string

// HostStatus is one of the hosts that a function asks for.
type HostStatus struct {
	// hostname is the host.
	// +required
	Hostname Hostname `json:"hostname,omitempty"`
	// state says whether the function has the host: Accepted; Conflict, an older function
	// has it; or NotPermitted, the namespace may not have it. More values may come.
	// +required
	State HostState `json:"state,omitempty"`
}

// HostState says whether a function has a host.
//
// +kubebuilder:validation:Enum=Accepted;Conflict;NotPermitted
type HostState string

const (
	// HostAccepted says that calls to the host go to the function.
	HostAccepted HostState = "Accepted"
	// HostConflict says that an older function has the host.
	HostConflict HostState = "Conflict"
	// HostNotPermitted says that the namespace may not have the host.
	HostNotPermitted HostState = "NotPermitted"
)

// MaxHosts is how many hosts a function may ask for.
const MaxHosts = 16
