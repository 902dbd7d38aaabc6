package control

import "net/http"

// Host is what requests are made to.
const Host = host

// Handler is what Serve serves.
func Handler(token string, k Kernel) http.Handler { return guard(token, routes(k)) }
