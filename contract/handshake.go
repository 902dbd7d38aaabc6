package contract

import "github.com/hashicorp/go-plugin"

// ProtocolVersion is the major version of the protobuf packages. The kernel
// refuses an extension that speaks another one.
const ProtocolVersion = 1

// PluginName is the one entry of the go-plugin plugin map.
const PluginName = "extension"

// Handshake is the go-plugin handshake. The cookie keeps people from starting
// an extension by hand; it is not a secret.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "SWITCHBOARD_EXTENSION",
	MagicCookieValue: "b81c3d9e5f7a4c20",
}

// NodeVariable is the environment variable with the name of the cluster's node that runs an
// extension. Without a cluster it is not set.
const NodeVariable = "SWITCHBOARD_CLUSTER_NODE"

// Metadata keys of gRPC requests.
const (
	// ExtensionHeader names the extension that a kernel request is for, because
	// several built-in extensions may share one process.
	ExtensionHeader = "switchboard-extension"
	// TokenHeader carries InitRequest.kernel_token on every request to the
	// kernel's services.
	TokenHeader = "switchboard-token"
)

// Files through which the owner's clients reach the kernel of a home. They send the
// token under TokenHeader on every request to the admin service.
const (
	// ControlSocket is the socket's name in the runtime directory.
	ControlSocket = "control.sock"
	// ControlToken is the token file's name in the home.
	ControlToken = "control.token"
)
