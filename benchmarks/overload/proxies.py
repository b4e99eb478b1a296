"""
Configurations of the proxies, as their manuals advise for this, with the best numbers found.

``{port}`` is theirs, ``{behind}`` that of the gunicorn behind, ``{folder}`` a folder to
write to. All that begins with 16, 24, 12, 8, 2 or 40 was chosen knowing the database.
"""

from __future__ import annotations

__all__ = ["HAPROXY", "HAPROXY_ACL", "NGINX", "NGINX_TIERS"]

#: HAProxy queues by priority, for 250 ms at most, in front of 16 requests.
HAPROXY = """
global
    maxconn 8000
    nbthread 1
defaults
    mode http
    option abortonclose
    http-reuse always
    timeout connect 1s
    timeout client 30s
    timeout server 30s
    timeout http-request 10s
    timeout queue 250ms
    retries 0
frontend in
    bind 127.0.0.1:{port} backlog 4096
    http-request set-priority-class int(-10) if { path_beg /payments }
    http-request set-priority-class int(10) if { path_beg /analytics }
    use_backend health if { path /healthz }
    default_backend app
backend app
    server s1 127.0.0.1:{behind} maxconn 16
backend health
    server s1 127.0.0.1:{behind} maxconn 4
"""

#: The same with a length of the queue for each priority, beyond which it refuses at once. A
#: slot stays taken when a client leaves, since the thread behind is still busy.
HAPROXY_ACL = HAPROXY.replace("option abortonclose", "no option abortonclose").replace(
    "    use_backend health",
    """    http-request deny deny_status 503 if { path_beg /analytics } { queue(app) gt 2 }
    http-request deny deny_status 503 if { path_beg /updates } { queue(app) gt 8 }
    http-request deny deny_status 503 if { path_beg /payments } { queue(app) gt 40 }
    use_backend health""",
)

#: nginx counts what is under way and refuses beyond 16.
NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
events { worker_connections 8000; }
http {
    access_log off;
    client_body_buffer_size 64k;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    limit_conn_zone $server_name zone=all:1m;
    limit_conn_status 503;
    upstream app { server 127.0.0.1:{behind}; keepalive 32; }
    server {
        listen 127.0.0.1:{port} backlog=4096;
        server_name benchmark;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        location /healthz { proxy_pass http://app; }
        location / { limit_conn all 16; proxy_pass http://app; }
    }
}
"""

#: The same with a limit for each priority; a slot stays taken when a client leaves.
NGINX_TIERS = NGINX.replace(
    "        location / { limit_conn all 16;",
    """        proxy_ignore_client_abort on;
        location /payments { limit_conn all 24; proxy_pass http://app; }
        location /analytics { limit_conn all 8; proxy_pass http://app; }
        location / { limit_conn all 12;""",
)
