package contract

import "github.com/hashicorp/go-plugin"

// ProtocolVersion is the major version of the protobuf packages. The kernel
// refuses an extension that speaks another one.
const ProtocolVersion = 1

// PluginName is the one entry of the go-plugin plugin map.
const PluginName = "extension"

// Handshake is the go-plugin handshake. The cookie keeps a person from starting
// an extension by hand; it is no secret.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "SWITCHBOARD_EXTENSION",
	MagicCookieValue: "b81c3d9e5f7a4c20",
}

// Metadata keys of gRPC requests.
const (
	// ExtensionHeader names the extension that a request of the kernel is for:
	// several built-in extensions may share one process.
	ExtensionHeader = "switchboard-extension"
	// TokenHeader carries the token of InitRequest on every request to the
	// kernel's services.
	TokenHeader = "switchboard-token"
)

// Where clients of the owner reach the kernel of a home. They send the token under
// TokenHeader on every request to the admin service.
const (
	// ControlSocket is the name of the socket in the runtime directory.
	ControlSocket = "control.sock"
	// ControlToken is the name of the file in the home that holds the token.
	ControlToken = "control.token"
)
