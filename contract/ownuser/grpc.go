package ownuser

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcpeer "google.golang.org/grpc/peer"
)

// Credentials are those of a gRPC server without encryption whose requests can ask
// for their connection with ConnOf.
func Credentials() credentials.TransportCredentials { return plaintext{insecure.NewCredentials()} }

// ConnOf returns the connection that a request came by, as the listener accepted it.
// Nil: the server has other credentials.
func ConnOf(ctx context.Context) net.Conn {
	if p, ok := grpcpeer.FromContext(ctx); ok {
		if v, ok := p.AuthInfo.(via); ok {
			return v.Conn
		}
	}
	return nil
}

type plaintext struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (plaintext) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c, via{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, c}, nil
}

// via holds the connection of a request.
type via struct {
	credentials.CommonAuthInfo
	net.Conn
}

// AuthType implements credentials.AuthInfo.
func (via) AuthType() string { return "insecure" }
